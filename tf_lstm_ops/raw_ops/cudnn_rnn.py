"""The CudnnRNN ops: multi-layer RNNs.

B batch, T time, I input size, H cell size (number of units), P hidden size (num_proj where that is
positive and less than H, else H), L layers, D directions. All tensors have one type, half,
bfloat16, float or double, except the integer tensors that are named. The CPU kernels are also
registered under the stock names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.raw_ops.common import call, public

if TYPE_CHECKING:
    from tf_lstm_ops.raw_ops.types import (
        CudnnRNNBackpropResults,
        CudnnRNNBackpropV2Results,
        CudnnRNNBackpropV3Results,
        CudnnRNNResults,
        CudnnRNNV2Results,
        CudnnRNNV3Results,
        TensorLike,
    )


def _with_static_shapes(outputs: Any) -> Any:
    """Sets the static shapes that depend on attributes, which shape functions cannot read."""
    if tf.executing_eagerly():
        return outputs
    op = outputs.output.op
    if not op.type.startswith(op_definitions.NAMESPACE):  # of the composite, which sets them
        return outputs
    sequence, input_h, input_c = (op.inputs[n].shape for n in range(3))
    directions = 2 if op.get_attr("direction") == b"bidirectional" else 1
    hidden = input_h[2] if sequence.rank == 3 and input_h.rank == 3 else None
    # A larger size is not one of a shape; the kernel refuses the call.
    if hidden is not None and directions * hidden <= tf.int64.max:
        outputs.output.set_shape([*sequence[:2], directions * hidden])
    outputs.output_c.set_shape(input_c if op.get_attr("rnn_mode") == b"lstm" else [])
    return outputs


@public
def CudnnRNN(
    *,
    input: TensorLike,
    input_h: TensorLike,
    input_c: TensorLike,
    params: TensorLike,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    is_training: bool = True,
    name: str | None = None,
) -> CudnnRNNResults:
    """A multi-layer RNN over sequences of one length; ``tf.raw_ops.CudnnRNN``.

    input, input_h, input_c and params have gradients. Without `is_training` they run the op again.
    """
    return _with_static_shapes(call("CudnnRNN", locals()))


@public
def CudnnRNNV2(
    *,
    input: TensorLike,
    input_h: TensorLike,
    input_c: TensorLike,
    params: TensorLike,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    is_training: bool = True,
    name: str | None = None,
) -> CudnnRNNV2Results:
    """CudnnRNN with one more output; ``tf.raw_ops.CudnnRNNV2``.

    input, input_h, input_c and params have gradients. Without `is_training` they run the op again.
    """
    return _with_static_shapes(call("CudnnRNNV2", locals()))


@public
def CudnnRNNV3(
    *,
    input: TensorLike,
    input_h: TensorLike,
    input_c: TensorLike,
    params: TensorLike,
    sequence_lengths: TensorLike,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    is_training: bool = True,
    time_major: bool = True,
    name: str | None = None,
) -> CudnnRNNV3Results:
    """A multi-layer RNN over sequences of different lengths; ``tf.raw_ops.CudnnRNNV3``.

    input, input_h, input_c and params have gradients. Without `is_training` they run the op again.

    >>> import tensorflow as tf
    >>> from tf_lstm_ops import raw_ops
    >>> T, B, I, H = 5, 2, 3, 4
    >>> size = raw_ops.CudnnRNNParamsSize(
    ...     num_layers=1, num_units=H, input_size=I, T=tf.float32, S=tf.int32
    ... )
    >>> state = tf.zeros([1, B, H])
    >>> result = raw_ops.CudnnRNNV3(
    ...     input=tf.ones([T, B, I]),
    ...     input_h=state,
    ...     input_c=state,
    ...     params=tf.ones(size),
    ...     sequence_lengths=[5, 2],
    ... )
    >>> result.output.shape
    TensorShape([5, 2, 4])
    >>> float(tf.reduce_sum(result.output[2:, 1]))  # past the second row's length
    0.0
    """
    return _with_static_shapes(call("CudnnRNNV3", locals()))


@public
def CudnnRNNBackprop(
    *,
    input: TensorLike,
    input_h: TensorLike,
    input_c: TensorLike,
    params: TensorLike,
    output: TensorLike,
    output_h: TensorLike,
    output_c: TensorLike,
    output_backprop: TensorLike,
    output_h_backprop: TensorLike,
    output_c_backprop: TensorLike,
    reserve_space: TensorLike,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> CudnnRNNBackpropResults:
    """Gradient of CudnnRNN; ``tf.raw_ops.CudnnRNNBackprop``."""
    return call("CudnnRNNBackprop", locals())


@public
def CudnnRNNBackpropV2(
    *,
    input: TensorLike,
    input_h: TensorLike,
    input_c: TensorLike,
    params: TensorLike,
    output: TensorLike,
    output_h: TensorLike,
    output_c: TensorLike,
    output_backprop: TensorLike,
    output_h_backprop: TensorLike,
    output_c_backprop: TensorLike,
    reserve_space: TensorLike,
    host_reserved: TensorLike,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> CudnnRNNBackpropV2Results:
    """Gradient of CudnnRNNV2; ``tf.raw_ops.CudnnRNNBackpropV2``."""
    return call("CudnnRNNBackpropV2", locals())


@public
def CudnnRNNBackpropV3(
    *,
    input: TensorLike,
    input_h: TensorLike,
    input_c: TensorLike,
    params: TensorLike,
    sequence_lengths: TensorLike,
    output: TensorLike,
    output_h: TensorLike,
    output_c: TensorLike,
    output_backprop: TensorLike,
    output_h_backprop: TensorLike,
    output_c_backprop: TensorLike,
    reserve_space: TensorLike,
    host_reserved: TensorLike,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    time_major: bool = True,
    name: str | None = None,
) -> CudnnRNNBackpropV3Results:
    """Gradient of CudnnRNNV3; ``tf.raw_ops.CudnnRNNBackpropV3``."""
    return call("CudnnRNNBackpropV3", locals())
