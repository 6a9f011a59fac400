"""TensorFlow's own CudnnRNNV3 for calls of the CudnnRNN family on an NVIDIA GPU.

TensorFlow's kernel is cuDNN, and needs no self-test. The results are those of this package's ops,
whose contract is wider: CudnnRNN and CudnnRNNV2 with cuDNN 9, rows of length 0, states of several
pseudo-layers in batch-major order, zeros past the lengths in double, zeros for what only an LSTM
has, and several backward passes of one call.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops import _placement, _tf_private, converters
from tf_lstm_ops.composite.common import copy_of_reserve
from tf_lstm_ops.composite.cudnn_ops import checked_model
from tf_lstm_ops.composite.cudnn_rnn import model_attributes

_INPUTS = ("input", "input_h", "input_c", "params", "sequence_lengths")
_VERSIONS = ("", "V2", "V3")
FORWARD = tuple(f"CudnnRNN{version}" for version in _VERSIONS)
BACKWARD = tuple(f"CudnnRNNBackprop{version}" for version in _VERSIONS)


@functools.cache
def _types() -> frozenset[tf.DType]:
    """The types for which TensorFlow has both kernels on the GPU, and bfloat16, which is computed
    in float32: TensorFlow's own gradient in bfloat16 converts the bytes of reserve_space as if they
    were numbers."""
    found = []
    for op in ("CudnnRNNV3", "CudnnRNNBackpropV3"):
        of_gpu = (k for k in _tf_private.registered_kernels(op))
        constraints = (c for k in of_gpu if k.device_type == "GPU" for c in k.constraint)
        found.append({tf.as_dtype(t) for c in constraints for t in c.allowed_values.list.type})
    both = set.intersection(*found)
    return frozenset(both | {tf.bfloat16} if tf.float32 in both else both - {tf.bfloat16})


def is_used(dtype: tf.DType) -> bool:
    """Whether a call that is made or traced here takes TensorFlow's CudnnRNNV3.

    Args:
      dtype: the type of the call.

    Returns:
      True if it may run on an NVIDIA GPU.
    """
    if not _placement.may_use_cuda() or converters.plain_ops_required():
        return False
    return dtype in _types()


def covers(op: str, arguments: dict[str, Any]) -> bool:
    """Whether `call` computes a call.

    Args:
      op: the op's name without its namespace.
      arguments: inputs and attributes by name, with tensors of the right types.

    Returns:
      False for other ops; for a call with a projection, which TensorFlow's kernel refuses; without
      steps, rows or columns, which cuDNN refuses; and for a gradient op in bfloat16.
    """
    if (op not in FORWARD and op not in BACKWARD) or arguments.get("num_proj"):
        return False
    sequence = arguments["input"]
    if op in BACKWARD and sequence.dtype.base_dtype == tf.bfloat16:
        return False
    return is_used(sequence.dtype.base_dtype) and 0 not in sequence.shape


def call(op: str, **arguments: Any) -> list[tf.Tensor]:
    """Calls TensorFlow's op instead of one of this package.

    Args:
      op: a name of FORWARD or BACKWARD.
      **arguments: its inputs and attributes, with tensors of the right types and shapes.

    Returns:
      The outputs of `op`. reserve_space is in cuDNN's own format.

    Raises:
      ValueError: an input has a wrong shape, or one that must be static is not.
      InvalidArgumentError: params has a wrong size that is not known while tracing.
    """
    if op in BACKWARD:
        return _backward(**arguments)
    found = forward(**arguments)
    if not arguments.get("is_training", True):
        found[3:] = [tf.zeros([], found[0].dtype), tf.zeros([], tf.int8)]
    return found[:4] if op == "CudnnRNN" else found


def forward(
    input: tf.Tensor,
    input_h: tf.Tensor,
    input_c: tf.Tensor,
    params: tf.Tensor,
    sequence_lengths: tf.Tensor | None = None,
    *,
    is_training: bool = True,
    dropout: float = 0.0,
    time_major: bool = True,
    **model: Any,
) -> list[tf.Tensor]:
    """The forward pass.

    Args:
      input, input_h, input_c, params, sequence_lengths: as raw_ops.CudnnRNNV3 takes them; no
        lengths: all rows have all steps.
      is_training: whether dropout applies. cuDNN saves activations in any case: TensorFlow's
        gradient needs them, and whether a gradient follows is not known here.
      dropout, time_major, **model: attributes of the op.

    Returns:
      output, output_h, output_c, reserve_space, host_reserved. In bfloat16 reserve_space is empty:
      the tape of the ops in float32 has what a gradient needs.

    Raises:
      ValueError, InvalidArgumentError: as of `call`.
    """
    if input.dtype == tf.bfloat16:
        x, h, c, p = (tf.cast(v, tf.float32) for v in (input, input_h, input_c, params))
        wide = forward(
            *(x, h, c, p, sequence_lengths),
            is_training=is_training,
            dropout=dropout,
            time_major=time_major,
            **model,
        )
        narrow = [tf.cast(v, tf.bfloat16) for v in wide[:3]]
        return [*narrow, tf.zeros([], tf.bfloat16), wide[4]]
    params = _checked_params(
        params, input, input_h, input_c, sequence_lengths, {**model, "time_major": time_major}
    )
    layout = _Layout(time_major, input_h)
    x, h, c = map(layout.swapped, (input, input_h, input_c))
    has_c = model.get("rnn_mode", "lstm") == "lstm"
    if not has_c:
        c = tf.where(False, c, tf.zeros_like(c))  # its gradient is zero, not what is in memory
    rows = _Rows(x, sequence_lengths, layout.time_major)
    found = _Outputs(
        *_call(
            (layout.padded(rows.zeroed(x)), h, c, params, rows.lengths),
            is_training=True,
            dropout=dropout if is_training else 0.0,
            time_major=layout.time_major,
            **model,
        )
    )
    results = [
        rows.zeroed(layout.unpadded(found.output)),
        rows.or_else(found.output_h, h),
        rows.or_else(found.output_c, c) if has_c else tf.zeros([], x.dtype),
    ]
    return [*map(layout.swapped, results), found.reserve_space, found.host_reserved]


class _Outputs(NamedTuple):
    output: tf.Tensor
    output_h: tf.Tensor
    output_c: tf.Tensor
    reserve_space: tf.Tensor
    host_reserved: tf.Tensor


def _call(inputs: tuple[tf.Tensor, ...], **attributes: Any) -> Sequence[tf.Tensor]:
    """TensorFlow's op, in eager code with a gradient that may be taken more than once."""
    named = dict(zip(_INPUTS, inputs, strict=True))
    if not tf.executing_eagerly():  # a SavedModel would lose the gradient
        return list(tf.raw_ops.CudnnRNNV3(**named, **attributes))

    @tf.custom_gradient
    def call(*differentiable: tf.Tensor) -> Any:
        given = {**named, **dict(zip(_INPUTS, differentiable, strict=False))}
        found = tf.raw_ops.CudnnRNNV3(**given, **attributes)
        return tuple(found), lambda *grads: _gradient(given, attributes, list(found), grads)

    return list(call(*inputs[:-1]))


def _gradient(
    inputs: dict[str, tf.Tensor],
    attributes: dict[str, Any],
    outputs: Sequence[tf.Tensor],
    grads: Sequence[tf.Tensor],
) -> list[tf.Tensor]:
    """The gradients of input, input_h, input_c and params. cuDNN's backward pass writes to the
    reserve, and TensorFlow's own gradient gives it the only one."""
    found = _Outputs(*outputs)
    others = {name: value for name, value in attributes.items() if name != "is_training"}
    upstream = {f"{name}_backprop": g for name, g in zip(_Outputs._fields[:3], grads, strict=False)}
    reserve = copy_of_reserve(found.reserve_space)
    saved = {**found._asdict(), "reserve_space": reserve}
    return list(tf.raw_ops.CudnnRNNBackpropV3(**inputs, **saved, **upstream, **others))


def _backward(
    input: tf.Tensor,
    sequence_lengths: tf.Tensor | None = None,
    host_reserved: tf.Tensor | None = None,
    *,
    params: tf.Tensor,
    reserve_space: tf.Tensor,
    time_major: bool = True,
    **others: Any,
) -> list[tf.Tensor]:
    """The gradients of input, input_h, input_c and params."""
    initial = others["input_h"], others["input_c"]
    settings = {**others, "time_major": time_major}
    params = _checked_params(params, input, *initial, sequence_lengths, settings)
    layout = _Layout(time_major, others["input_h"])
    sequences = ("output", "output_backprop")
    states = ("input_h", "input_c", "output_h", "output_c")
    state_grads = ("output_h_backprop", "output_c_backprop")
    x = layout.swapped(input)
    given = {n: layout.swapped(others.pop(n)) for n in (*sequences, *states, *state_grads)}
    rows = _Rows(x, sequence_lengths, layout.time_major)
    grads = {n: rows.or_else(given[n], tf.zeros([], x.dtype)) for n in state_grads}
    grads["output_backprop"] = rows.zeroed(given["output_backprop"])
    padded = {n: layout.padded({**given, **grads}[n]) for n in sequences}
    found = tf.raw_ops.CudnnRNNBackpropV3(
        input=layout.padded(rows.zeroed(x)),
        params=params,
        reserve_space=copy_of_reserve(reserve_space),
        host_reserved=tf.zeros([], tf.int8) if host_reserved is None else host_reserved,
        sequence_lengths=rows.lengths,
        time_major=layout.time_major,
        **{**given, **grads, **padded},
        **others,
    )
    has_c = settings.get("rnn_mode", "lstm") == "lstm"
    c_grad = rows.or_else(found.input_c_backprop, given["output_c_backprop"])
    results = [
        rows.zeroed(layout.unpadded(found.input_backprop)),
        rows.or_else(found.input_h_backprop, given["output_h_backprop"]),
        c_grad if has_c else tf.zeros_like(given["input_c"]),
    ]
    return [*map(layout.swapped, results), found.params_backprop]


def _checked_params(
    params: tf.Tensor,
    x: tf.Tensor,
    h: tf.Tensor,
    c: tf.Tensor,
    lengths: tf.Tensor,
    settings: dict[str, Any],
) -> tf.Tensor:
    """params, after a check of its size, which TensorFlow's kernel does not check."""
    size = checked_model(x, h, c, lengths, model_attributes(settings)).size()
    if not params.shape.is_compatible_with([size]):
        raise ValueError(f"params must have shape [{size}] but has {params.shape}")
    return tf.ensure_shape(params, [size])


class _Layout:
    """The layout in which TensorFlow's kernel computes.

    In batch-major order it takes several pseudo-layers' states for another order than their shape
    says, which the CPU kernel of this package does not. Such calls are time-major inside.

    A time-major call has one step more than its longest row. TensorFlow tells cuDNN of padding
    unless the call is time-major and all rows have all steps, and keeps cuDNN's descriptor for
    later calls of the same shapes: a shorter batch after a full one would be computed without.

    Attributes:
      time_major: whether the kernel computes in time-major order.
    """

    def __init__(self, time_major: bool, states: tf.Tensor) -> None:
        self._transposes = not time_major and states.shape[1] != 1
        self.time_major = time_major or self._transposes

    def swapped(self, value: tf.Tensor) -> tf.Tensor:
        """A sequence or state of the caller for the kernel, or vice versa; a scalar stays."""
        transposes = self._transposes and value.shape.rank == 3
        return tf.transpose(value, [1, 0, 2]) if transposes else value

    def padded(self, sequence: tf.Tensor) -> tf.Tensor:
        """A sequence in the kernel's order, with the step that no row has."""
        return tf.pad(sequence, [[0, 1], [0, 0], [0, 0]]) if self.time_major else sequence

    def unpadded(self, sequence: tf.Tensor) -> tf.Tensor:
        """A sequence of the kernel without that step."""
        return sequence[:-1] if self.time_major else sequence


class _Rows:
    """The rows of a batch. cuDNN refuses a length of 0: such a row computes one step, of zeros, and
    its results are replaced. In double TensorFlow's kernel fills the steps past a length with
    arbitrary numbers, since it tells cuDNN the address of a float.

    Attributes:
      lengths: int32 [B], positive.
    """

    def __init__(self, sequence: tf.Tensor, lengths: tf.Tensor | None, time_major: bool) -> None:
        time, batch = tf.unstack(tf.shape(sequence)[:2])[:: 1 if time_major else -1]
        self._is_empty = None
        self.lengths = tf.fill([batch], time) if lengths is None else lengths
        least = time if sequence.dtype == tf.float64 else 1
        if lengths is None or (tf.executing_eagerly() and tf.reduce_all(lengths >= least)):
            return
        is_empty = (lengths == 0)[:, tf.newaxis]
        self._is_empty = is_empty[tf.newaxis] if time_major else is_empty[:, tf.newaxis]
        is_step = tf.sequence_mask(lengths, time)
        self._is_step = (tf.transpose(is_step) if time_major else is_step)[:, :, tf.newaxis]
        self.lengths = tf.maximum(lengths, 1)

    def or_else(self, state: tf.Tensor, other: Any) -> tf.Tensor:
        """A state, with the values of another one in rows of length 0; a scalar stays."""
        if self._is_empty is None or state.shape.rank != 3:
            return state
        return tf.where(self._is_empty, other, state)

    def zeroed(self, sequence: tf.Tensor) -> tf.Tensor:
        """A sequence, zero past the lengths."""
        if self._is_empty is None:
            return sequence
        return tf.where(self._is_step, sequence, tf.zeros([], sequence.dtype))
