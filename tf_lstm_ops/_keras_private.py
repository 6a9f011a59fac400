"""Every private name of Keras that the package uses.

A name is private if Keras' API documentation does not list it: ``keras.src``, attributes with an
underscore, and some attributes, methods and hooks. No other file of the package has such a name,
except for the methods in OVERRIDDEN. Only the functions import Keras, because the ops work without
it.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import gc
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

# Methods of Keras' classes that our classes override and that Keras calls. Keras 3.17 could call
# others. By the module and the name of our class: Keras' class and its methods.
OVERRIDDEN: dict[str, tuple[str, tuple[str, ...]]] = {
    # A step of LSTMCell with implementation 1 and 2. They add peepholes and the clip.
    "lstm_cell.LSTMCell": (
        "LSTMCell",
        ("_compute_carry_and_output", "_compute_carry_and_output_fused"),
    ),
    # The computation of all steps, which RNN.call wraps. They run the fused ops.
    "single_layer.SingleLayerRNN": ("RNN", ("inner_loop",)),
    "stacked_rnn.StackedRNN": ("RNN", ("inner_loop",)),
}

# An attribute that a class of ours computes and that Keras reads: whether XLA may compile a layer.
COMPUTED = {"fused.FusedRNN": "supports_jit"}

_REPLACED = "_tf_lstm_ops_replaced"  # the mark of a function that replaces one of Keras

# The modules whose functions trace a model for model.export, by its format.
EXPORT_MODULES = {
    "litert": "keras.src.export.litert",
    "onnx": "keras.src.export.onnx",
    "openvino": "keras.src.export.openvino",
}

# How the modules of classes of Keras 2 begin: in tf_keras, and in TensorFlow before 2.16.
MODULES_OF_KERAS_2 = ("tf_keras.", "tensorflow.python.keras.")


# Models.


def layers_of(model: Any) -> list[Any]:
    """A model or layer, and all layers in it.

    Args:
      model: a Keras model or layer.

    Returns:
      The model and the layers in its attributes, containers, wrappers and nested models, each once.
    """
    return list(model._flatten_layers())


def children(parent: Any) -> list[Any]:
    """The layers that a model or a layer has itself, in its attributes and containers.

    Args:
      parent: a Keras model or layer.

    Returns:
      The layers, without those that they have.
    """
    return list(parent._flatten_layers(include_self=False, recursive=False))


def is_functional(model: Any) -> bool:
    """Whether a model is one of layers that are called on symbolic tensors.

    Args:
      model: a Keras model or layer.

    Returns:
      True for ``keras.Model(inputs, outputs)``. A Sequential model is not one, it has one.
    """
    from keras.src.models import Functional

    return isinstance(model, Functional)


def functional(model: Any) -> Any:
    """The functional model with the structure of a model's inputs and outputs.

    Args:
      model: a functional or Sequential model, built.

    Returns:
      The functional model, which a Sequential model holds.
    """
    import keras

    return model._functional if isinstance(model, keras.Sequential) else model


def input_signature(model: Any) -> Any:
    """The arguments of a model, as ``model.export`` finds them.

    Args:
      model: a ``keras.Model``.

    Returns:
      A list with a structure of ``keras.InputSpec`` for each positional argument; the first
      dimension is unknown. A functional model has one argument.

    Raises:
      ValueError: the model is not built.
    """
    from keras.src.export import export_utils

    return export_utils.get_input_signature(model)


def replace_exports(
    replacements: Mapping[str, Callable[..., None]], is_replaced: Callable[[Any], bool]
) -> None:
    """Makes ``model.export`` call other functions for some models. A second call changes nothing.

    Args:
      replacements: functions of the arguments of Keras' own function, by the format in
        EXPORT_MODULES. A format that this Keras does not have is passed over.
      is_replaced: whether a model is one of these; others are exported by Keras.
    """
    from keras.src import export

    for form, function in replacements.items():
        name = f"export_{form}"
        original = getattr(export, name, None)
        if original is None or hasattr(original, _REPLACED):
            continue

        def chosen(
            model: Any,
            *args: Any,
            _original: Callable[..., None] = original,
            _function: Callable[..., None] = function,
            **kwargs: Any,
        ) -> None:
            (_function if is_replaced(model) else _original)(model, *args, **kwargs)

        functools.update_wrapper(chosen, original)
        setattr(chosen, _REPLACED, True)
        for module in export, importlib.import_module(EXPORT_MODULES[form]):
            setattr(module, name, chosen)


def specs_of_export(signature: Any) -> Any:
    """An argument input_signature of ``model.export`` as TensorFlow's specs.

    Args:
      signature: a structure of ``keras.InputSpec``, ``tf.TensorSpec``, symbolic and other tensors.

    Returns:
      The structure with ``tf.TensorSpec``; the batch size of a tensor is open.

    Raises:
      TypeError: a part of the structure is none of these.
      ValueError: a spec lacks its shape or type.
    """
    import keras
    from keras.src.export import export_utils

    return keras.tree.map_structure(export_utils.make_tf_tensor_spec, signature)


def configure_lite(converter: Any, options: dict[str, Any]) -> None:
    """Sets attributes of a ``tf.lite.TFLiteConverter`` as ``model.export`` does.

    Args:
      converter: the converter.
      options: the further arguments of ``model.export``; target_spec may be a dict.

    Raises:
      ValueError: the converter has no such attribute.
    """
    from keras.src.export.litert import LiteRTExporter

    LiteRTExporter(None, **options)._apply_converter_kwargs(converter)


def compile_arguments(layer: Any) -> dict[str, Any] | None:
    """The arguments of ``compile`` as they were given.

    Args:
      layer: a model or another layer.

    Returns:
      The objects and texts by name; None for a layer, and for a model that is not compiled.
    """
    import keras

    found = getattr(layer, "_compile_config", None) if isinstance(layer, keras.Model) else None
    return None if found is None else found.config


def variable_key(optimizer: Any, variable: Any) -> Any:
    """By what an optimizer knows a variable, as in the set of those without weight decay.

    Args:
      optimizer: the optimizer.
      variable: a variable of a model.

    Returns:
      A number or a text.
    """
    return optimizer._var_key(variable)


def safe_mode() -> contextlib.AbstractContextManager[Any]:
    """A context in which no layer is made of the code in a file.

    Returns:
      The context, which sets what safe_mode=True of ``keras.models.load_model`` sets.
    """
    from keras.src.saving.serialization_lib import SafeModeScope

    return SafeModeScope(safe_mode=True)


def symbolic_calls(layer: Any) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """The arguments with which functional models call a layer.

    Args:
      layer: the layer.

    Returns:
      Positional and named arguments of each call.
    """
    return [(node.arguments.args, node.arguments.kwargs) for node in layer._inbound_nodes]


def structures(model: Any) -> tuple[Any, Any]:
    """The structures of the inputs and outputs of a functional or Sequential model.

    Args:
      model: the model, built.

    Returns:
      Symbolic tensors, or lists and dictionaries of them, as a call takes and returns arrays.
    """
    of_inputs = functional(model)
    return of_inputs._inputs_struct, of_inputs._outputs_struct


def call_of(tensor: Any) -> tuple[tuple[int, int], int]:
    """Which call of a layer made a symbolic tensor.

    Args:
      tensor: the symbolic tensor.

    Returns:
      A key of the call, and the index of the tensor among its outputs.
    """
    history = tensor._keras_history
    return (id(history.operation), history.node_index), history.tensor_index


def producer(tensor: Any) -> tuple[Any, list[Any], tuple[Any, ...], dict[str, Any]]:
    """The call that made a symbolic tensor of a functional model.

    Args:
      tensor: the symbolic tensor.

    Returns:
      The layer or operation; the symbolic tensors among its arguments; its positional and its named
      arguments. The mask that Keras itself passes on is among the named ones.
    """
    history = tensor._keras_history
    node = history.operation._inbound_nodes[history.node_index]
    arguments = node.arguments
    return history.operation, list(node.input_tensors), arguments.args, dict(arguments.kwargs)


def operation_name(operation: Any) -> str:
    """Which class of ``keras.src.ops`` an operation is of.

    Args:
      operation: the operation that made a symbolic tensor.

    Returns:
      The module and the class, such as "numpy.Add"; empty for other classes.
    """
    kind = type(operation)
    package, _, module = kind.__module__.rpartition(".")
    return f"{module}.{kind.__name__}" if package == "keras.src.ops" else ""


def options_of_operation(operation: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments of the constructor of an operation of ``keras.src.ops``.

    Args:
      operation: the operation.

    Returns:
      The values and the defaults by their names.
    """
    parameters = inspect.signature(type(operation).__init__).parameters
    own = {name: value for name, value in vars(operation).items() if name in parameters}
    own.pop("name", None)
    return own, {name: parameters[name].default for name in own}


def mask_of(tensor: Any) -> Any:
    """The mask that a symbolic tensor carries.

    Args:
      tensor: the symbolic tensor.

    Returns:
      The symbolic mask, or None.
    """
    return getattr(tensor, "_keras_mask", None)


def tensors(model: Any) -> list[Any]:
    """The symbolic tensors in the graph of a model.

    Args:
      model: a functional or Sequential model, built.

    Returns:
      The tensors, each behind those from which it is computed.
    """
    levels = sorted(functional(model)._nodes_by_depth.items(), reverse=True)
    return [each for _, nodes in levels for node in nodes for each in node.output_tensors]


def set_mask(tensor: Any, mask: Any) -> None:
    """Attaches a mask to a symbolic tensor.

    Args:
      tensor: the symbolic tensor.
      mask: its mask, or None.
    """
    tensor._keras_mask = mask


def run_graph(model: Any, inputs: Any, caller: Callable[[Any], Callable[..., Any]]) -> Any:
    """Calls the layers of a model on other tensors.

    Args:
      model: a functional or Sequential model, built.
      inputs: a structure of tensors, as a call of the model takes.
      caller: a function that makes the function to call of each layer or operation.

    Returns:
      The results in the structure of those of the model.
    """
    return functional(model)._run_through_graph(inputs, operation_fn=caller)


def finalize_states(model: Any) -> None:
    """Makes layers compute what they derive from their weights, after these were set.

    Args:
      model: a Keras model or layer.
    """
    for layer in layers_of(model):
        if hasattr(layer, "adapt") and hasattr(layer, "finalize_state"):  # such as Normalization
            layer.finalize_state()


def gets_mask(layer: Any) -> bool:
    """Whether a call of a layer in the graph of a functional or Sequential model has a mask.

    Args:
      layer: a Keras layer or model.

    Returns:
      Whether a mask is attached to an input of such a call, or given to it.
    """
    for node in layer._inbound_nodes:
        masks = [mask_of(tensor) for tensor in node.input_tensors]
        if any(mask is not None for mask in (*masks, node.arguments.kwargs.get("mask"))):
            return True
    return False


def forget_traces(model: Any) -> None:
    """Makes fit, evaluate and predict trace a model again, with XLA only if all layers can.

    Args:
      model: a ``keras.Model``; models in it are included.
    """
    import keras

    for layer in layers_of(model):
        if isinstance(layer, keras.Model):
            layer.train_function = layer.test_function = layer.predict_function = None
            if layer.compiled:
                layer.jit_compile = layer.jit_compile  # the setter checks the layers


# Layers.


def set_class(layer: Any, kind: type) -> None:
    """Gives a layer another class. Its attributes stay.

    Keras tracks assignments to attributes of a layer, and would refuse or note this one.

    Args:
      layer: a layer, built or not.
      kind: the new class.
    """
    object.__setattr__(layer, "__class__", kind)


def become(layer: Any, old: Any, new: Any) -> None:
    """Gives a layer the class of another one, and the attributes that this class has.

    Args:
      layer: the layer. Weights, seeds, states and all attributes that both classes have stay.
      old: a layer of the same class, not built.
      new: a layer of the new class, not built. The value of Keras' supports_masking is its own.
    """
    attributes, before, after = vars(layer), vars(old), vars(new)
    set_class(layer, type(new))
    for name in before.keys() - after.keys():
        attributes.pop(name, None)
    # Both classes have _supports_masking, the value of Keras' supports_masking. Ours do not use it.
    for name in {*after.keys() - attributes.keys(), *after.keys() & {"_supports_masking"}}:
        attributes[name] = after[name]


def input_multipliers(cell: Any, step: Any) -> Any:
    """The multipliers of a cell's dropout of its input.

    A cell keeps them until its layer's call ends, so all steps have the same.

    Args:
      cell: an LSTMCell or GRUCell with 0 < dropout < 1.
      step: [B, I], the input of a step.

    Returns:
      [B, I]; with implementation=1 a list of one such tensor for each gate.
    """
    return cell.get_dropout_mask(step)


def recurrent_multipliers(cell: Any, h: Any) -> Any:
    """The multipliers of a cell's dropout of h; they are kept as those of `input_multipliers`.

    Args:
      cell: an LSTMCell or GRUCell with 0 < recurrent_dropout < 1.
      h: [B, P], the output of a step.

    Returns:
      [B, P]; with implementation=1 a list of one such tensor for each gate.
    """
    return cell.get_recurrent_dropout_mask(h)


class TemporaryLoop:
    """A function that replaces ``inner_loop`` of a layer within `replaced_loops`.

    Args:
      function: a function of the arguments and results of ``inner_loop``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


@contextlib.contextmanager
def replaced_loops(functions: Iterable[tuple[Any, Callable[..., Any]]]) -> Iterator[None]:
    """A context in which layers compute their sequences by other functions.

    Args:
      functions: layers of ``keras.layers.RNN``, each with a function of the arguments and results
        of ``inner_loop``. A layer whose ``inner_loop`` is not that of its class keeps it.

    Yields:
      None.
    """
    with contextlib.ExitStack() as stack:
        for layer, function in functions:
            if "inner_loop" not in vars(layer):
                layer.inner_loop = TemporaryLoop(function)
                stack.callback(vars(layer).pop, "inner_loop", None)
        yield


def computes_otherwise(layer: Any) -> bool:
    """Whether a layer computes its sequences by other code than its class.

    Args:
      layer: a layer.

    Returns:
      True within the context of `replaced_loops`, if the layer has a function ``call`` of its own,
      and if its call runs again in the backward pass (``keras.RematScope``).
    """
    return bool({"inner_loop", "call"} & vars(layer).keys()) or (
        getattr(layer, "_remat_mode", None) is not None
    )


# The methods that `replace_method` replaces, and the parameters that they have in this Keras.
LOOP = "inner_loop"
_PARAMETERS = ("self", "sequences", "initial_state", "mask", "training")


def replace_method(
    kind: type, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[[], None]:
    """Replaces a method of a recurrent layer of Keras.

    Args:
      kind: the class, which defines the method itself.
      name: `LOOP` or "call".
      make: makes the new method from that of Keras.

    Returns:
      A function that puts Keras' method back, unless others have replaced it since.

    Raises:
      RuntimeError: the class has no such method, or one with other parameters.
    """
    original: Any = vars(kind).get(name)
    is_known = getattr(original, "__module__", None) == kind.__module__
    if not is_known or {*inspect.signature(original).parameters} != {*_PARAMETERS}:
        raise RuntimeError(
            f"keras.layers.{kind.__name__} must have a method {name} of {', '.join(_PARAMETERS)}, "
            "but this version of Keras has another one, or a program has replaced it"
        )
    new = functools.update_wrapper(make(original), original)
    setattr(kind, name, new)

    def restore() -> None:
        if vars(kind).get(name) is new:
            setattr(kind, name, original)

    return restore


class Tracer(enum.Enum):
    """What traces a call of a layer."""

    TRAINER = "fit, evaluate or predict"
    SHAPES = "the shapes of a symbolic call"
    OTHER = "a tf.function"


# The functions that call train_step, test_step and predict_step, and what traces a symbolic call.
_TRAINER = "keras.src.backend.tensorflow.trainer"
_TRACERS = {
    (_TRAINER, "one_step_on_data"): Tracer.TRAINER,
    ("keras.src.backend.tensorflow.core", "compute_output_spec"): Tracer.SHAPES,
}


def tracer(callers: Iterable[tuple[str, str]]) -> Tracer:
    """What traces a call.

    Args:
      callers: the functions between the call and the innermost trace, each with its module.

    Returns:
      TRAINER also for the functions train_on_batch and the like.
    """
    return next((_TRACERS[caller] for caller in callers if caller in _TRACERS), Tracer.OTHER)


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """A context without garbage collection, which would end the process within get_referrers."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def trace_again() -> None:
    """Makes fit, evaluate and predict of all models of this process trace their functions again.

    A function that is no function of Keras stays. No model is without its function for a time.
    """
    import keras

    kinds = [keras.Model]
    for kind in kinds:
        kinds += [each for each in kind.__subclasses__() if each not in kinds]
    # Not gc.get_objects: other threads are still making some of those objects.
    with _no_collection():
        referrers = gc.get_referrers(*kinds)
    for model in referrers:
        if type(model) not in kinds:
            continue
        for name in ("train_function", "test_function", "predict_function"):
            function = vars(model).get(name)
            function = getattr(function, "python_function", function)
            if getattr(function, "__module__", None) == _TRAINER:
                with contextlib.suppress(Exception):  # of a method of the user's
                    getattr(model, f"make_{name}")(force=True)


def is_of_keras(kind: type) -> bool:
    """Whether the methods of a class and of its bases are those that Keras has defined.

    Args:
      kind: a class of Keras.

    Returns:
      False if a program has replaced one.
    """
    return all(
        getattr(method, "__module__", None) == each.__module__
        for each in kind.__mro__
        if each.__module__.startswith("keras.src.layers.rnn.")
        for method in vars(each).values()
        if inspect.isfunction(method)
    )


def run_loop(kind: type, layer: Any, *args: Any, **kwargs: Any) -> Any:
    """Computes the sequences of a layer as a class does. `replaced_loops` has no effect.

    Args:
      kind: ``keras.layers.RNN`` or a class derived from it.
      layer: a layer of this class.
      *args, **kwargs: sequences [B, T, I], the list of the initial states, mask and training.

    Returns:
      The last output, all outputs, and the list of the final states.
    """
    return kind.inner_loop(layer, *args, **kwargs)  # type: ignore[attr-defined]
