"""Every private name of TensorFlow that the package uses.

A name is private if TensorFlow's API documentation does not list it: modules below ``tensorflow``,
attributes with an underscore, and some attributes of objects. No other file of the package has such
a name.
"""

from __future__ import annotations

import functools
import importlib
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.client import pywrap_tf_session
from tensorflow.python.eager import context, record, tape
from tensorflow.python.framework import kernels, op_def_registry, ops
from tensorflow.python.framework.registry import Registry
from tensorflow.python.ops import control_flow_ops, control_flow_util
from tensorflow.python.ops.parallel_for import pfor

# The module whose functions trace a model for TFLiteConverter.from_keras_model.
LITE_CONVERTER = "tensorflow.lite.python.lite"

# The module whose functions trace a tf.function.
_FUNCTIONS = "tensorflow.python.eager.polymorphic_function."
_REPLICAS = "tensorflow.python.distribute.mirrored_run"
_FUNCTION_TRACER = f"{_FUNCTIONS}tracing_compilation"


# Ops and kernels.


def op_definition(name: str) -> Any:
    """The definition of an op.

    Args:
      name: the op's name in a graph.

    Returns:
      An ``OpDef`` with the op's inputs, outputs and attributes; None if no op has this name.
    """
    return op_def_registry.get(name)


def op_names() -> list[str]:
    """The names of all ops in TensorFlow's registry.

    Returns:
      Names in a graph, also of ops whose definition Python has not read.
    """
    buffer = pywrap_tf_session.TF_GetAllOpList()
    try:
        found = op_def_pb2.OpList.FromString(pywrap_tf_session.TF_GetBuffer(buffer))
    finally:
        pywrap_tf_session.TF_DeleteBuffer(buffer)
    return [op.name for op in found.op]


def op_function(generated: ModuleType, attribute: str) -> Callable[..., Any]:
    """The function of an op that takes positional arguments, too.

    Args:
      generated: what ``tf.load_op_library`` returned.
      attribute: its attribute, a function that takes keywords only, which is slower.

    Returns:
      The function of the module that has the attribute's ``__name__``.
    """
    return getattr(generated, getattr(generated, attribute).__name__)


def registered_kernels(op: str) -> Sequence[Any]:
    """The registered kernels of an op.

    Args:
      op: the op's name in a graph.

    Returns:
      A ``KernelDef`` for each, with device_type, and constraint: the types of each attribute.
    """
    return kernels.get_registered_kernels_for_op(op).kernel


def saved_model_from(content: bytes) -> Any:
    """The graphs of a SavedModel.

    Args:
      content: of its file saved_model.pb.

    Returns:
      A ``SavedModel`` with meta_graphs.
    """
    return saved_model_pb2.SavedModel.FromString(content)


# Traced functions.


def arguments(function: Any) -> list[tf.Tensor]:
    """The symbolic arguments of a concrete function.

    Args:
      function: what ``get_concrete_function`` returned.

    Returns:
      The tensors of its graph, without those of captured values.
    """
    return list(function.inputs[: len(function.inputs) - len(function.captured_inputs)])


def captured_resources(function: Any) -> list[tf.Tensor]:
    """What a concrete function reads that has no value: resources that are no variables.

    Args:
      function: what ``get_concrete_function`` returned.

    Returns:
      Handles, for example of tables; and captured lists of tensors.
    """
    variables = {id(variable.handle) for variable in function.variables}
    kinds = (tf.resource, tf.variant)
    captured = [value for value in function.captured_inputs if value.dtype in kinds]
    return [value for value in captured if id(value) not in variables]


# Devices.


def clear_kernel_cache() -> None:
    """Makes eager code create the kernels of all ops again at their next calls."""
    context.context().clear_kernel_cache()


def eager_place() -> tuple[Any, str | None]:
    """What distinguishes eager calls whose constants must not be shared.

    Returns:
      The eager context, which is another object after a reset; and the device that the innermost
      tf.device names, None if there is none.
    """
    eager = context.context()
    return eager, eager.device_name


def device_type() -> str | None:
    """The type of the device that the innermost tf.device names.

    Returns:
      Such as "GPU"; None if it names none.
    """
    if tf.executing_eagerly():
        return tf.DeviceSpec.from_string(eager_place()[1] or "").device_type
    for spec in tf.compat.v1.get_default_graph()._device_function_stack.peek_objs():
        if spec.function is None:  # tf.device(None)
            break
        kind = tf.DeviceSpec.from_string(spec.raw_string or "").device_type
        if kind:
            return kind
    return None


# XLA.


def separate_xla_traces() -> None:
    """Makes a tf.function reuse a trace only in the XLA context in which the trace was made.

    Without this switch, which TensorFlow has for TPUs, XLA would reuse a trace with fused ops that
    a tf.function made outside of XLA, and vice versa.
    """
    control_flow_ops.XLAControlFlowContext.RequiresUniqueFunctionRetracing = lambda _: True


def is_traced_for_xla() -> bool:
    """Whether XLA will compile the current trace.

    Returns:
      True within a tf.function with jit_compile=True and within the functions that it calls.
    """
    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


# Gradients.


def offer_gradients(
    gradients: Mapping[str, Callable[..., Any]],
    around: Mapping[str, Callable[..., Any]],
) -> None:
    """Offers gradients of ops to TensorFlow, for ops of which no other gradient is registered.

    ``tf.RegisterGradient`` accepts one gradient of an op and refuses all others. An offer is not a
    registration: other code can register a gradient of the op, before this call or after it, and
    TensorFlow then uses that one. A second call replaces all offers.

    Args:
      gradients: functions for ``tf.RegisterGradient``, by the op's name in a graph.
      around: functions that TensorFlow calls in place of gradients of its own, by the op's name.
        Each gets TensorFlow's gradient and its arguments.
    """

    class Offering(Registry):
        __slots__ = ()

        def lookup(self, name: str) -> Any:
            try:
                found = super().lookup(name)
            except LookupError:
                if name not in gradients:
                    raise
                return gradients[name]
            if name in around and found.__module__.startswith("tensorflow."):
                return functools.partial(around[name], found)
            return found

    ops.gradient_registry.__class__ = Offering


def callers_in_trace() -> Iterator[tuple[str, str]]:
    """The functions between the call of this one and the innermost trace of a ``tf.function``.

    Yields:
      The name of each function's module and its own, the innermost first. Traces of loops and
      branches do not count. Without a trace, all functions.
    """
    for frame in _frames():
        module = _module(frame)
        if module == _FUNCTION_TRACER:
            return
        yield module, frame.f_code.co_name


def trace_has_own_tape() -> bool:
    """Whether the innermost trace of a ``tf.function`` computes gradients by a tape of its own.

    Returns:
      True if a call of the function is traced, and a function in the trace has a
      ``tf.GradientTape`` as a local variable. False within ``get_concrete_function``, which
      programs call to write a file, and outside of a ``tf.function``.
    """
    if not record.could_possibly_record():
        return False
    has_tape = is_traced = False
    for frame in _frames():
        module = _module(frame)
        is_traced = is_traced or module == _FUNCTION_TRACER
        if not is_traced:
            values = frame.f_locals.values()
            has_tape = has_tape or any(isinstance(value, tf.GradientTape) for value in values)
        elif not has_tape or _is_request(frame):
            return False
    return has_tape and is_traced


def _is_request(frame: types.FrameType) -> bool:
    """Whether a frame is that of ``get_concrete_function``."""
    return _module(frame).startswith(_FUNCTIONS) and "get_concrete" in frame.f_code.co_name


def _frames() -> Iterator[types.FrameType]:
    """The frames of the caller of the calling function, of its caller, and so on.

    A ``tf.distribute.MirroredStrategy`` calls each replica in a thread. The frames of the thread
    that waits for the replica follow.
    """
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        is_replica = _module(frame) == _REPLICAS and frame.f_code.co_name == "run"
        frame = (_waiting_for(frame.f_locals["self"]) if is_replica else None) or frame.f_back


def _waiting_for(replica: threading.Thread) -> types.FrameType | None:
    """The frame of another thread that has started the thread of a replica, and waits for it."""
    for frame in sys._current_frames().values():
        found: types.FrameType | None = frame
        while found is not None:
            is_of_replicas = _module(found) == _REPLICAS and "threads" in found.f_code.co_varnames
            if is_of_replicas and replica in found.f_locals.get("threads", ()):
                return found
            found = found.f_back
    return None


def _module(frame: types.FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def may_record() -> bool:
    """Whether a tf.GradientTape that is not stopped, or a forward accumulator, is in use.

    Returns:
      True also while a function is traced within such a tape.
    """
    return record.could_possibly_record()


def is_watched(value: Any) -> bool:
    """Whether a tf.GradientTape that is not stopped watches an input of an op.

    Args:
      value: tensor, variable or another value that TensorFlow converts.

    Returns:
      True also for a trainable variable that the op would be the first to read within the tape.
    """
    return record.should_record_backprop([_watched(value)])


def _watched(value: Any) -> Any:
    """The tensor that tapes watch in place of an input; of a variable, its handle."""
    if isinstance(value, tf.Tensor):
        return value
    # Outside of a replica the variables of tf.distribute have no handle.
    if not isinstance(value, tf.Variable) or isinstance(value, tf.distribute.DistributedValues):
        return tf.convert_to_tensor(value)
    if value.trainable:
        tape.variable_accessed(value)  # as the op does when it reads the variable
    return value.handle


def eager_attributes(op: Any) -> dict[str, Any] | None:
    """The attributes of an eager call that a gradient function gets in place of an op.

    Args:
      op: what the gradient function gets.

    Returns:
      The values by name, text as bytes; None if it is an op of a graph.
    """
    flat = getattr(op, "attrs", None)  # all names and values in turn
    return None if flat is None else dict(zip(flat[::2], flat[1::2], strict=True))


def needs_gradient(op: Any, number: int) -> bool:
    """Whether the gradient of an input is needed. A tf.GradientTape says so; tf.gradients does not.

    Args:
      op: what a gradient function gets.
      number: the input's position.

    Returns:
      False for an input of an eager call that no tape watches.
    """
    return number not in (getattr(op, "skip_input_indices", None) or ())


# tf.vectorized_map, tape.jacobian and tape.batch_jacobian.


def register_pfor(name: str, convert: Callable[[Any], list[Any]]) -> None:
    """Registers a converter of an op, unless there is one.

    Args:
      name: the op's name in a graph.
      convert: a function of pfor's description of the op. The description has the op; the inputs,
        each with its value and whether it is stacked; and what `iterations` reads. The function
        returns the outputs, each made by `pfor_output`.
    """
    if name not in pfor._pfor_converter_registry:
        pfor.RegisterPFor(name)(convert)


def iterations(pfor_input: Any) -> tf.Tensor:
    """The number of iterations.

    Args:
      pfor_input: what a converter gets.

    Returns:
      An integer, a scalar.
    """
    return pfor_input.pfor.loop_len_vector[0]


def pfor_output(value: tf.Tensor, is_stacked: bool) -> Any:
    """An output for a converter to return.

    Args:
      value: the tensor.
      is_stacked: whether its first axis is that of the iterations.

    Returns:
      The output.
    """
    return pfor.wrap(value, is_stacked)


def call_like(op: Any, inputs: Sequence[Any]) -> list[tf.Tensor]:
    """Adds an op to the graph that differs from another one in its inputs only.

    Args:
      op: the other op.
      inputs: those of the new op.

    Returns:
      The outputs of the new op.
    """
    dtypes = [output.dtype for output in op.outputs]
    return list(pfor._create_op(op.type, inputs, dtypes, attrs=op.node_def.attr).outputs)


# TensorFlow Lite, which moves from TensorFlow to other packages.


def lite() -> Any:
    """The module with TensorFlow's converter to TensorFlow Lite.

    Returns:
      ``tf.lite``, with TFLiteConverter, Optimize and OpsSet.

    Raises:
      ImportError: this TensorFlow has none. No other package converts a SavedModel: ai-edge-litert
        2.3 runs files, and litert-converter 0.5 converts modules of MLIR.
    """
    found = getattr(tf, "lite", None)
    if not hasattr(found, "TFLiteConverter"):
        raise ImportError(
            f"export.tflite needs the converter tf.lite.TFLiteConverter, which TensorFlow "
            f"{tf.__version__} does not have. No other package has it: ai-edge-litert can run the "
            "files, but not write them. Install a version of TensorFlow that has it:\n"
            "pip install 'tensorflow<2.23'"
        )
    return found


def lite_interpreter() -> Any:
    """The interpreter of TensorFlow Lite that TensorFlow brings.

    Returns:
      A function of ``model_path``; None if TensorFlow has no interpreter.
    """
    found = getattr(getattr(tf, "lite", None), "Interpreter", None)
    if found is None:
        return None

    def without_warning(model_path: str) -> Any:
        with warnings.catch_warnings():  # TensorFlow announces its move to ai_edge_litert
            warnings.simplefilter("ignore")
            return found(model_path=model_path)

    return without_warning


def lite_schema() -> Any:
    """The Python classes of TensorFlow Lite's schema.fbs.

    Returns:
      The module, of TensorFlow or else of ai-edge-litert.
    """
    return _of_lite("python.schema_py_generated", "schema_py_generated")


def lite_files() -> Any:
    """The functions that read and write files of TensorFlow Lite.

    Returns:
      The module with read_model_from_bytearray and convert_object_to_bytearray, of TensorFlow or
      else of ai-edge-litert.
    """
    return _of_lite("tools.flatbuffer_utils", "tools.flatbuffer_utils")


def _of_lite(of_tensorflow: str, of_litert: str) -> Any:
    try:
        return importlib.import_module(f"tensorflow.lite.{of_tensorflow}")
    except ImportError:
        return importlib.import_module(f"ai_edge_litert.{of_litert}")
