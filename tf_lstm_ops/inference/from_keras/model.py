"""A Keras model as the graph of a session."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

import keras

from tf_lstm_ops import _deviation, _keras_private, _received
from tf_lstm_ops._refusal import Refusals, Refused
from tf_lstm_ops.inference import file, graph
from tf_lstm_ops.inference.from_keras import call_masks, kinds, operations
from tf_lstm_ops.inference.from_keras.inputs import finished
from tf_lstm_ops.inference.from_keras.recurrent import computing, unsupported
from tf_lstm_ops.inference.graph import Value, lower
from tf_lstm_ops.inference.layers import GlobalAveragePooling1D
from tf_lstm_ops.inference.layers.products import mask_of
from tf_lstm_ops.inference.layers.recurrent import Recurrent
from tf_lstm_ops.keras.sequence_mask import SequenceMask

# Names that Keras makes, with the number of inputs so far. A file should not depend on it.
_OF_KERAS = re.compile(r"(keras_tensor|input_layer)(_\d+)?")

# The output of a layer that is refused.
_REFUSED = graph.input_value(file.Input("", "int32", (None, None)))
_OF_INTEGERS = (keras.layers.Embedding, keras.layers.TimeDistributed, SequenceMask)


def graph_of(model: Any) -> file.Graph:
    """Describes the layers of a model and copies their weights.

    Args:
      model: a built ``keras.Model``, Sequential or functional, or a list of built layers.

    Returns:
      The graph.

    Raises:
      ValueError: the model is not built, or has a layer that a session does not compute. The
        message names the layer.
      TypeError: model is neither a model nor a list of layers.
    """
    if isinstance(model, list | tuple):
        return _of_list(model)
    if not isinstance(model, keras.Model):
        raise TypeError(
            "a session is made from a keras.Model or a list of layers. Received: "
            f"{_received.text(model)}{_instead(model)}"
        )
    _require_known_model(model)
    if type(model) is keras.Sequential and not model.inputs:
        return _of_list(model.layers)
    inputs, outputs = _keras_private.structures(model)
    values = {id(tensor): _input(model, tensor) for tensor in model.inputs}
    refusals = Refusals("layers")
    results = _trace(model, values, 1, refusals)
    refusals.finish()
    return finished(
        lower(
            _structured(model, inputs, values),
            _structured(model, outputs, results),
        ),
        model.inputs,
    )


def _instead(value: Any) -> str:
    """What to do with an argument that is neither a model nor a list."""
    if _received.is_path(value):
        return (
            ". Session.load opens a file that Session.save wrote. For a Keras model: "
            f"Session(keras.models.load_model({_received.text(value)}))"
        )
    if isinstance(value, keras.Layer):
        return ". Pass a list of layers: Session([layer])"
    return _received.instead_of_model(value)


def _require_known_model(model: Any) -> None:
    """Refuses models whose call is not the computation of their layers."""
    if reason := _deviation.of(model):
        raise unsupported(model, reason)
    if type(model) is keras.Sequential:
        if not model.built:
            raise ValueError(
                f"the model {model.name} is not built. Call it once, or give it a keras.Input"
            )
    elif not _keras_private.is_functional(model) or not _is_of_keras(type(model)):
        raise unsupported(
            model, f"{type(model).__name__} is a class of its own, whose call is not known"
        )


def _is_of_keras(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "keras"


def _input(model: Any, tensor: Any) -> Value:
    """An input of a model. `inputs.finished` decides its type and the size of its first axis."""
    kinds.require_supported_input(model, tensor)
    are_lengths = len(tensor.shape) == 1 and tensor.dtype not in kinds.FLOATS
    if not 2 <= len(tensor.shape) <= 6 and not are_lengths:
        raise unsupported(
            model, f"its input {tensor.name} has {len(tensor.shape)} axes, not 2 to 6"
        )
    name = "" if _OF_KERAS.fullmatch(tensor.name) else tensor.name
    if len(name.encode()) > file.NAME_BYTES:
        name = ""
    # A session has lengths [B, 1].
    value = graph.input_value(file.Input(name, "int32", tuple(tensor.shape[1:]) or (1,)))
    return value.with_mask(mask_of(value)) if kinds.is_mask(tensor) else value


def _structured(model: Any, structure: Any, values: Mapping[int, Value]) -> Any:
    """The values of the tensors in a structure. A list of one is this one."""
    if isinstance(structure, Mapping):
        parts = {name: _leaf(model, values, each) for name, each in structure.items()}
        return dict(sorted(parts.items()))
    if isinstance(structure, list | tuple):
        if len(structure) == 1:
            return _leaf(model, values, structure[0])
        return [_leaf(model, values, each) for each in structure]
    return _leaf(model, values, structure)


def _leaf(model: Any, values: Mapping[int, Value], tensor: Any) -> Value:
    value = values.get(id(tensor))
    if value is None:
        raise unsupported(model, "its inputs or outputs are structures of structures")
    return value


# Lists of layers.


def _of_list(layers: Sequence[Any]) -> file.Graph:
    if not layers:
        raise ValueError("the list of layers is empty")
    for layer in layers:
        if not isinstance(layer, keras.Layer):
            raise TypeError(
                f"the list must have Keras layers. Received: {_received.text(layer)}"
                f"{_received.instead_of_model(layer)}"
            )
    seen: set[int] = set()
    for layer in layers:
        if id(layer) in seen:
            raise unsupported(layer, "the list has it more than once")
        seen.add(id(layer))
    dims, dtype = _input_of_list(layers)
    x = graph.input_value(file.Input("", "int32", dims))
    refusals = Refusals("layers")
    values = _in_turn(layers, [x], 1, refusals)
    refusals.finish()
    tensor = keras.KerasTensor((None, *dims), dtype)
    return finished(lower(x, values if len(values) > 1 else values[0]), [tensor])


def _input_of_list(layers: Sequence[Any]) -> tuple[tuple[int | None, ...], str]:
    """The sizes and the type of the input of a list of layers; without any its rank is 3."""
    for layer in layers:
        tensor = None
        if type(layer) is keras.layers.InputLayer:
            tensor = layer.output
        elif isinstance(layer, keras.Model) and layer.inputs:
            tensor = layer.inputs[0]
        if tensor is not None:
            return tuple(tensor.shape[1:]), tensor.dtype
        kind = _deviation.class_that_computes(type(layer))
        if kind is keras.layers.Embedding:
            return (None,), "int32"
        if not kinds.is_identity(layer):
            break
    return (None, None), "float32"


# Calls of layers.


def _in_turn(
    layers: Sequence[Any], values: Sequence[Value], batch_axes: int, refusals: Refusals
) -> list[Value]:
    """The outputs of layers one behind the other."""
    for layer in layers:
        given, values = values, [_REFUSED]
        with refusals.part():
            values = _apply(layer, given, [], batch_axes, refusals)
    return [*values]


def _trace(
    model: Any, values: Mapping[int, Value], batch_axes: int, refusals: Refusals
) -> dict[int, Value]:
    """The values of all outputs of a functional or Sequential model, by the ids of its tensors."""
    found = dict(values)
    calls: dict[Any, list[Value]] = {}
    functional = _keras_private.functional(model)
    stack = [*functional.outputs]
    while stack:
        tensor = stack[-1]
        if id(tensor) in found:
            stack.pop()
            continue
        missing = [each for each in _operands(model, tensor) if id(each) not in found]
        if missing:
            stack += missing
            continue
        found[id(tensor)] = _REFUSED
        key, index = _keras_private.call_of(tensor)
        with refusals.part():
            if key not in calls:
                calls[key] = []
                calls[key] = _called(model, tensor, found, batch_axes, refusals)
            if index < len(calls[key]):  # else it was refused
                found[id(tensor)] = calls[key][index]
        stack.pop()
    return found


def _operands(model: Any, tensor: Any) -> list[Any]:
    """The tensors of the model that a symbolic tensor depends on."""
    if _is_of_operation(tensor):
        return [*_keras_private.producer(tensor)[1]]
    try:
        return _call_of(model, tensor).tensors
    except Refused:  # which is said when the tensor's turn comes
        return [*_keras_private.producer(tensor)[1]]


def _is_of_operation(tensor: Any) -> bool:
    """Whether an operation made a symbolic tensor, not a layer."""
    return not isinstance(_keras_private.producer(tensor)[0], keras.Layer)


def _called(
    model: Any, tensor: Any, found: Mapping[int, Value], batch_axes: int, refusals: Refusals
) -> list[Value]:
    """The outputs of the call that made a symbolic tensor."""
    if _is_of_operation(tensor):
        return operations.applied(tensor, found, batch_axes)
    call = _call_of(model, tensor)
    _require_floats(model, call)
    inputs = [found[id(each)] for each in call.inputs]
    states = [found[id(each)] for each in call.states]
    if call.carrier is not None:
        inputs[0] = inputs[0].with_mask(found[id(call.carrier)].mask)
    return _apply(call.layer, inputs, states, batch_axes, refusals, call.is_masked)


def _require_floats(model: Any, call: _Call) -> None:
    """Refuses an input of integers, to which Keras rounds, of other layers than an Embedding."""
    kind = _deviation.class_that_computes(type(call.layer))
    if any(map(call_masks.is_of_lengths, call.inputs)):
        raise unsupported(call.layer, "its input is the mask of sequence_lengths")
    if isinstance(call.layer, keras.Model) or kind in _OF_INTEGERS:
        return
    given = {id(tensor) for tensor in model.inputs}
    for tensor in call.inputs:
        if id(tensor) in given and tensor.dtype not in kinds.FLOATS:
            raise unsupported(call.layer, f"its input has dtype {tensor.dtype}, not float32")


@dataclasses.dataclass(frozen=True)
class _Call:
    """A call of a layer on symbolic tensors.

    Attributes:
      layer, inputs, states: the layer, its inputs, and its initial states.
      carrier: the tensor whose mask the call has as an argument; None: the mask of the input.
      is_masked: whether the layer computes with its mask.
    """

    layer: Any
    inputs: list[Any]
    states: list[Any]
    carrier: Any
    is_masked: bool

    @property
    def tensors(self) -> list[Any]:
        carrier = [] if self.carrier is None else [self.carrier]
        return [*self.inputs, *self.states, *carrier]


def _call_of(model: Any, tensor: Any) -> _Call:
    """The call that made a symbolic tensor of a model."""
    layer, tensors, args, kwargs = _keras_private.producer(tensor)
    inputs, states = keras.tree.flatten(args[:1]), []
    further = dict(enumerate(args[1:])) | kwargs
    if kinds.is_recurrent(layer):
        # Its first arguments are the sequence and the initial state.
        for key in (0, "initial_state"):
            states += [
                each for each in keras.tree.flatten(further.pop(key, None)) if each is not None
            ]
    mask = further.pop("mask", None)
    masks = [each for each in keras.tree.flatten(mask) if each is not None]
    carrier = _carrier(model, layer, inputs, mask) if masks else None
    if any(value is not None and value is not False for value in further.values()):
        raise unsupported(layer, "its call has further arguments")
    if {id(each) for each in tensors} != {id(each) for each in (*inputs, *states, *masks)}:
        raise unsupported(layer, "an argument of its call is not an array")
    # Keras passes the mask of an input on, but not to a call that has initial states, too.
    return _Call(layer, inputs, states, carrier, is_masked=bool(masks) or not states)


def _carrier(model: Any, layer: Any, inputs: Sequence[Any], masks: Any) -> Any:
    """The tensor whose mask a call has as an argument; None if the inputs have the masks."""
    if call_masks.are_carried(inputs, masks):
        return None
    found = call_masks.carrier(model, masks) if len(inputs) == 1 else None
    if found is None:
        raise unsupported(
            layer,
            "the mask of its call is not that of an Embedding or a Masking layer of the model",
        )
    return found


def _apply(
    layer: Any,
    inputs: Sequence[Value],
    states: Sequence[Value],
    batch_axes: int,
    refusals: Refusals,
    is_masked: bool = True,
) -> list[Value]:
    """The values that a layer computes. It passes on also a mask with which it does not compute."""
    if isinstance(layer, keras.Model):
        _require_known_model(layer)
        return _apply_model(layer, inputs, batch_axes, refusals)
    if _deviation.class_that_computes(type(layer)) is keras.layers.TimeDistributed:
        kinds.translated(layer)
        (x,) = inputs
        step = _step_of(layer, x, batch_axes)
        outputs = _apply(layer.layer, [step], [], batch_axes + 1, refusals)
        return [_passed(x, y.with_mask(x.mask)) for y in outputs]
    built = kinds.translated(layer)
    _require_usable_masks(layer, inputs)
    x = inputs[0] if is_masked else inputs[0].with_mask(None)
    _require_masks_pass(layer, built, x, batch_axes)
    with computing(layer):
        result = built.apply([x, *inputs[1:], *states], batch_axes)
    outputs = [*result] if isinstance(result, tuple) else [result]
    if states and layer.return_sequences:
        of_both = getattr(layer, "merge_mode", "") is None  # the sequences of both directions
        sequences = 2 if of_both else 1
        outputs[:sequences] = [y.with_mask(inputs[0].mask) for y in outputs[:sequences]]
    if kinds.is_identity(layer) or layer.supports_masking or _makes_mask(built, outputs):
        return [_passed(inputs[0], y) for y in outputs]
    if isinstance(built, Recurrent):
        # Stock recurrent layers of Keras 3.16 do not pass masks on; those of a session do.
        return [_stopped(layer, y) for y in outputs]
    return [y.with_mask(None) for y in outputs]


def _step_of(layer: Any, x: Value, batch_axes: int) -> Value:
    """The input of the layer within a TimeDistributed."""
    if graph.is_of_call(x.mask):
        return x.with_mask(None)
    # A mask of the steps is no mask of what is in a step. Keras uses it as one.
    is_inner = graph.mask_axes(x.mask) > batch_axes + 1  # type: ignore[arg-type]
    return x if is_inner else Value(x.node, x.index, x.mask, layer)


def _require_usable_masks(layer: Any, inputs: Sequence[Value]) -> None:
    """Refuses masks that change what a layer computes in a way that a session does not have."""
    if kinds.computes_with_masks(layer) and not all(graph.is_of_call(x.mask) for x in inputs):
        raise unsupported(layer, "its input has a mask, with which it computes something else")


def _makes_mask(built: Any, outputs: Sequence[Value]) -> bool:
    """Whether a layer has a mask of its own, as an Embedding has."""
    return type(built).__name__ == "Embedding" and outputs[0].mask is not None


def _passed(x: Value, y: Value) -> Value:
    """y, with the layer that stopped its mask."""
    is_stopped = x.stopped is not None and y.mask is not None
    return Value(y.node, y.index, y.mask, x.stopped) if is_stopped else y


def _stopped(layer: Any, y: Value) -> Value:
    return y if graph.is_of_call(y.mask) else Value(y.node, y.index, y.mask, layer)


def _require_masks_pass(layer: Any, built: Any, x: Value, batch_axes: int) -> None:
    if x.mask is None or not isinstance(built, Recurrent | GlobalAveragePooling1D):
        return
    if x.stopped is not None:
        raise unsupported(
            x.stopped, f"it does not pass the mask of the Masking layer on to layer {layer.name}"
        )
    axes = graph.mask_axes(x.mask)
    if axes != batch_axes + 1:
        raise unsupported(layer, f"the mask of its input has {axes} axes, not {batch_axes + 1}")


def _apply_model(
    model: Any, inputs: Sequence[Value], batch_axes: int, refusals: Refusals
) -> list[Value]:
    """The outputs of a nested model."""
    if type(model) is keras.Sequential and not model.inputs:
        return _in_turn(model.layers, inputs, batch_axes, refusals)
    for tensor in model.inputs:
        kinds.require_supported_input(model, tensor)
    if len(inputs) != len(model.inputs):
        raise unsupported(
            model, f"it has {len(model.inputs)} inputs, and a call of it {len(inputs)}"
        )
    # A model without masks of its own destroys that of its input.
    given = zip(model.inputs, inputs, strict=True)
    values = {id(tensor): value for tensor, value in given}
    found = _trace(model, values, batch_axes, refusals)
    return [found[id(tensor)] for tensor in _keras_private.functional(model).outputs]
