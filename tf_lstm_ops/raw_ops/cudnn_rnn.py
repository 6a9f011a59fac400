"""The CudnnRNN ops: multi-layer RNNs.

B batch, T time, I input size, H cell size (number of units), P hidden size (num_proj where that is
positive and less than H, else H), L layers, D directions. All tensors have one type, half,
bfloat16, float or double, except the integer tensors that are named. The CPU kernels are also
registered under the stock names.

The model's attributes, which all these ops take:

* ``rnn_mode``: "lstm", "gru", "rnn_tanh" or "rnn_relu".
* ``input_mode``: "linear_input"; "skip_input": the first layer adds its input to every gate without
  a matrix, which needs I == H; "auto_select": "skip_input" where I == H, else "linear_input".
* ``direction``: "unidirectional" (D = 1) or "bidirectional" (D = 2).
* ``dropout``: the probability with which an element of a layer's output is dropped before the next
  layer, in training.
* ``seed``, ``seed2``: the seeds of dropout. Two zeros are an ordinary seed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.raw_ops.common import as_written, call

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


@as_written
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

    Gradients: of input, input_h, input_c and params. Unless `is_training`, they run the op again.

    Args:
      input: [T, B, I].
      input_h: [L*D, B, H], the initial outputs. Layer l and direction d have the index l * D + d.
      input_c: [L*D, B, H], the initial cell states; not read unless rnn_mode is "lstm".
      params: [params_size], in cuDNN's layout.
      rnn_mode, input_mode, direction, dropout, seed, seed2: the model's attributes, see the module.
      is_training: whether activations are saved for the gradient, and dropout applies.
      name: of the op in a graph.

    Returns:
      namedtuple (output [T, B, D*H]; output_h, output_c, the final states, shaped as the initial
      ones, output_c a scalar unless rnn_mode is "lstm"; reserve_space, the saved activations for
      the gradient, a scalar unless `is_training`).

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type.
    """
    return _with_static_shapes(call("CudnnRNN", locals()))


@as_written
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

    Args:
      input, input_h, input_c, params: as in CudnnRNN.
      rnn_mode, input_mode, direction, dropout, seed, seed2, is_training: as in CudnnRNN.
      name: of the op in a graph.

    Returns:
      namedtuple (output, output_h, output_c, reserve_space: as in CudnnRNN; host_reserved: int8,
      zero, [2] if `is_training`, else a scalar).

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type.
    """
    return _with_static_shapes(call("CudnnRNNV2", locals()))


@as_written
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

    Gradients: of input, input_h, input_c and params. Unless `is_training`, they run the op again.

    Args:
      input: [T, B, I], or [B, T, I] unless `time_major`. Steps past a length are not read.
      input_h: [L*D, B, P], or [B, L*D, P] unless `time_major`.
      input_c: [L*D, B, H], or [B, L*D, H] unless `time_major`; not read unless rnn_mode is "lstm".
      params: [params_size], in cuDNN's layout.
      sequence_lengths: int32 [B], each between 0 and T, in any order.
      rnn_mode, input_mode, direction, dropout, seed, seed2: the model's attributes, see the module.
      num_proj: where positive, the size to which the outputs of an LSTM are projected; at most H.
      is_training: whether activations are saved for the gradient, and dropout applies.
      time_major: whether the tensors are time-major rather than batch-major.
      name: of the op in a graph.

    Returns:
      namedtuple (output [T, B, D*P] or [B, T, D*P], zero past each length; output_h and output_c,
      the states after each sequence's last step, shaped as the initial ones, which they equal where
      a length is 0; output_c a scalar unless rnn_mode is "lstm"; reserve_space, the saved
      activations for the gradient, a scalar unless `is_training`; host_reserved: int8, a scalar).

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type, or a length out of range.
    """
    return _with_static_shapes(call("CudnnRNNV3", locals()))


@as_written
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
    """Gradient of CudnnRNN; ``tf.raw_ops.CudnnRNNBackprop``.

    Args:
      input, input_h, input_c, params: as CudnnRNN took them.
      output, output_h, output_c, reserve_space: as it returned them, with is_training=True.
      output_backprop, output_h_backprop, output_c_backprop: the gradients of its first three
        outputs, shaped as these.
      rnn_mode, input_mode, direction, dropout, seed, seed2: as CudnnRNN took them.
      name: of the op in a graph.

    Returns:
      namedtuple (input_backprop, input_h_backprop, input_c_backprop, params_backprop), shaped as
      the inputs; input_c_backprop is zero unless rnn_mode is "lstm".

    Raises:
      InvalidArgumentError: an argument of wrong rank, size or type; or reserve_space is not of a
        call with the same arguments.
    """
    return call("CudnnRNNBackprop", locals())


@as_written
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
    """Gradient of CudnnRNNV2; ``tf.raw_ops.CudnnRNNBackpropV2``.

    Args:
      input, input_h, input_c, params: as CudnnRNNV2 took them.
      output, output_h, output_c, reserve_space: as it returned them, with is_training=True.
      output_backprop, output_h_backprop, output_c_backprop: as in CudnnRNNBackprop.
      host_reserved: as CudnnRNNV2 returned it; not read.
      rnn_mode, input_mode, direction, dropout, seed, seed2: as CudnnRNNV2 took them.
      name: of the op in a graph.

    Returns:
      namedtuple as that of CudnnRNNBackprop.

    Raises:
      InvalidArgumentError: as CudnnRNNBackprop.
    """
    return call("CudnnRNNBackpropV2", locals())


@as_written
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
    """Gradient of CudnnRNNV3; ``tf.raw_ops.CudnnRNNBackpropV3``.

    Args:
      input, input_h, input_c, params, sequence_lengths: as CudnnRNNV3 took them.
      output, output_h, output_c, reserve_space: as it returned them, with is_training=True.
      output_backprop, output_h_backprop, output_c_backprop: the gradients of its first three
        outputs, shaped as these.
      host_reserved: as CudnnRNNV3 returned it; not read.
      rnn_mode, input_mode, direction, dropout, seed, seed2, num_proj, time_major: as CudnnRNNV3
        took them.
      name: of the op in a graph.

    Returns:
      namedtuple as that of CudnnRNNBackprop; input_backprop is zero past each length.

    Raises:
      InvalidArgumentError: as CudnnRNNBackprop, or a length out of range.
    """
    return call("CudnnRNNBackpropV3", locals())
