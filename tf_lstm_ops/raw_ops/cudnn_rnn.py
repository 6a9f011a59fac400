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

    input, input_h, input_c and params have gradients. Without `is_training` they run the op again.

    Args:
      input: [T, B, I], the input.
      input_h: [L*D, B, H], the initial outputs. Layer l and direction d have the index l * D + d.
      input_c: [L*D, B, H], the initial cell states; read only if rnn_mode is "lstm".
      params: [params_size], all weights in cuDNN's layout.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout: the probability in [0, 1] with which an output element of a layer is dropped before
        the next layer, in training. Default 0.0.
      seed, seed2: the seeds of dropout. Default 0; two zeros are an ordinary seed.
      is_training: whether dropout applies and activations are saved for the gradient. Default True.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The outputs as a named tuple with the fields output [T, B, D*H], output_h, output_c and
      reserve_space. output_h and output_c are the final states, with the shapes of the initial
      ones. output_c is a scalar unless rnn_mode is "lstm". reserve_space holds the activations for
      the gradient op; it is a scalar without `is_training`.

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type, or an attribute a value
        that is not allowed.
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

    input, input_h, input_c and params have gradients. Without `is_training` they run the op again.

    Args:
      input: [T, B, I], the input.
      input_h: [L*D, B, H], the initial outputs. Layer l and direction d have the index l * D + d.
      input_c: [L*D, B, H], the initial cell states; read only if rnn_mode is "lstm".
      params: [params_size], all weights in cuDNN's layout.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout: the probability in [0, 1] with which an output element of a layer is dropped before
        the next layer, in training. Default 0.0.
      seed, seed2: the seeds of dropout. Default 0; two zeros are an ordinary seed.
      is_training: whether dropout applies and activations are saved for the gradient. Default True.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The outputs as a named tuple with the fields output [T, B, D*H], output_h, output_c,
      reserve_space and host_reserved. output_h and output_c are the final states, with the shapes
      of the initial ones. output_c is a scalar unless rnn_mode is "lstm". reserve_space holds the
      activations for the gradient op; it is a scalar without `is_training`. host_reserved is int8
      zeros, [2] with `is_training`, else a scalar.

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type, or an attribute a value
        that is not allowed.
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

    Args:
      input: [T, B, I], the input; [B, T, I] without `time_major`. Steps past a length are not read.
      input_h: [L*D, B, P], the initial outputs; [B, L*D, P] without `time_major`. Layer l and
        direction d have the index l * D + d.
      input_c: [L*D, B, H], the initial cell states; [B, L*D, H] without `time_major`. Read only if
        rnn_mode is "lstm".
      params: [params_size], all weights in cuDNN's layout.
      sequence_lengths: int32 [B], the number of steps of each row, in [0, T] and in any order.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout: the probability in [0, 1] with which an output element of a layer is dropped before
        the next layer, in training. Default 0.0.
      seed, seed2: the seeds of dropout. Default 0; two zeros are an ordinary seed.
      num_proj: the size P to which an LSTM projects its outputs, at most H. Default 0: no
        projection.
      is_training: whether dropout applies and activations are saved for the gradient. Default True.
      time_major: if True, the first axis is time, for the states the layer; if False, the batch.
        Default True.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The outputs as a named tuple with the fields output, output_h, output_c, reserve_space and
      host_reserved. output is [T, B, D*P], or [B, T, D*P] without `time_major`, and zero past each
      length. output_h and output_c are the states after the last step of each row, with the shapes
      of the initial ones. For a row of length 0 they are the initial ones. output_c is a scalar
      unless rnn_mode is "lstm". reserve_space holds the activations for the gradient op; it is a
      scalar without `is_training`. host_reserved is an int8 scalar.

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type, or an attribute a value
        that is not allowed, or a length is not in [0, T].
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
      input: [T, B, I], the input.
      input_h: [L*D, B, H], the initial outputs. Layer l and direction d have the index l * D + d.
      input_c: [L*D, B, H], the initial cell states; read only if rnn_mode is "lstm".
      params: [params_size], all weights in cuDNN's layout.
      output, output_h, output_c, reserve_space: the outputs of the forward call, with
        is_training=True.
      output_backprop, output_h_backprop, output_c_backprop: the gradients of the loss with respect
        to output, output_h and output_c, with their shapes.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout, seed, seed2: as in the forward call. Defaults 0.0, 0 and 0.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The gradients as a named tuple with the fields input_backprop, input_h_backprop,
      input_c_backprop, params_backprop. Each has the shape of its argument. input_c_backprop is
      zero unless rnn_mode is "lstm".

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type, or an attribute a value
        that is not allowed; or reserve_space is not that of a call with the same arguments.
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
      input: [T, B, I], the input.
      input_h: [L*D, B, H], the initial outputs. Layer l and direction d have the index l * D + d.
      input_c: [L*D, B, H], the initial cell states; read only if rnn_mode is "lstm".
      params: [params_size], all weights in cuDNN's layout.
      output, output_h, output_c, reserve_space: the outputs of the forward call, with
        is_training=True.
      output_backprop, output_h_backprop, output_c_backprop: the gradients of the loss with respect
        to output, output_h and output_c, with their shapes.
      host_reserved: the output of the forward call; not read.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout, seed, seed2: as in the forward call. Defaults 0.0, 0 and 0.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The gradients as a named tuple with the fields input_backprop, input_h_backprop,
      input_c_backprop, params_backprop. Each has the shape of its argument. input_c_backprop is
      zero unless rnn_mode is "lstm".

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type, or an attribute a value
        that is not allowed; or reserve_space is not that of a call with the same arguments.
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
      input: [T, B, I], the input; [B, T, I] without `time_major`. Steps past a length are not read.
      input_h: [L*D, B, P], the initial outputs; [B, L*D, P] without `time_major`. Layer l and
        direction d have the index l * D + d.
      input_c: [L*D, B, H], the initial cell states; [B, L*D, H] without `time_major`. Read only if
        rnn_mode is "lstm".
      params: [params_size], all weights in cuDNN's layout.
      sequence_lengths: int32 [B], the number of steps of each row, in [0, T] and in any order.
      output, output_h, output_c, reserve_space: the outputs of the forward call, with
        is_training=True.
      output_backprop, output_h_backprop, output_c_backprop: the gradients of the loss with respect
        to output, output_h and output_c, with their shapes.
      host_reserved: the output of the forward call; not read.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout, seed, seed2: as in the forward call. Defaults 0.0, 0 and 0.
      num_proj: the size P to which an LSTM projects its outputs, at most H. Default 0: no
        projection.
      time_major: if True, the first axis is time, for the states the layer; if False, the batch.
        Default True.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      The gradients as a named tuple with the fields input_backprop, input_h_backprop,
      input_c_backprop, params_backprop. Each has the shape of its argument. input_c_backprop is
      zero unless rnn_mode is "lstm". input_backprop is zero past each length.

    Raises:
      InvalidArgumentError: an argument has the wrong rank, size or type, or an attribute a value
        that is not allowed, or a length is not in [0, T]; or reserve_space is not that of a call
        with the same arguments.
    """
    return call("CudnnRNNBackpropV3", locals())
