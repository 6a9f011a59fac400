"""The cuDNN family: stacks of recurrent layers. Equations, layouts and rules: docs/cudnn_rnn.md.

B batch, T time, I input size, H number of units, P num_proj where that is positive and less than H,
else H; L layers, D directions. The kernels for the CPU serve the stock names too.

``rnn_mode`` is "lstm", "gru", "rnn_tanh" or "rnn_relu"; ``input_mode`` "linear_input",
"skip_input" (needs I == H) or "auto_select" (skips where I == H); ``direction`` "unidirectional"
(D = 1) or "bidirectional" (D = 2). ``dropout`` is the probability that an output of a layer is
dropped on its way to the next one, in training, drawn from ``seed`` and ``seed2``.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_lstm_ops import composite
from tf_lstm_ops.raw_ops.common import as_written, call


def _with_static_shapes(outputs: Any) -> Any:
    """Sets what a graph can know of the shapes; the op's own shape function sees no attributes."""
    if tf.executing_eagerly() or composite.plain_ops_required():
        return outputs
    op = outputs.output.op
    sequence, input_h, input_c = (op.inputs[n].shape for n in range(3))
    directions = 2 if op.get_attr("direction") == b"bidirectional" else 1
    if sequence.rank == 3 and input_h.rank == 3 and input_h[2] is not None:
        outputs.output.set_shape([*sequence[:2], directions * input_h[2]])
    outputs.output_c.set_shape(input_c if op.get_attr("rnn_mode") == b"lstm" else [])
    return outputs


@as_written
def CudnnRNN(
    *,
    input: Any,
    input_h: Any,
    input_c: Any,
    params: Any,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    is_training: bool = True,
    name: str | None = None,
) -> Any:
    """A stack of recurrent layers over sequences of one length; ``tf.raw_ops.CudnnRNN``.

    Args:
      input: [T, B, I].
      input_h: [L*D, B, H], the initial outputs of layer l and direction d at l * D + d.
      input_c: [L*D, B, H], the initial cell states; not read unless rnn_mode is "lstm".
      params: [params_size], in cuDNN's layout.

    Returns:
      namedtuple (output [T, B, D*H]; output_h, output_c, the final states, shaped as the initial
      ones, output_c a scalar unless rnn_mode is "lstm"; reserve_space, what the gradient needs, a
      scalar unless `is_training`).

    Gradients: of input, input_h, input_c and params. ValueError unless `is_training`.
    """
    return _with_static_shapes(call("tf_lstm_ops_cudnn_rnn", locals()))


@as_written
def CudnnRNNV2(
    *,
    input: Any,
    input_h: Any,
    input_c: Any,
    params: Any,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    is_training: bool = True,
    name: str | None = None,
) -> Any:
    """As CudnnRNN; ``tf.raw_ops.CudnnRNNV2``.

    Returns:
      namedtuple (output, output_h, output_c, reserve_space, host_reserved: int8, zero, [2] if
      `is_training`, else a scalar).
    """
    return _with_static_shapes(call("tf_lstm_ops_cudnn_rnnv2", locals()))


@as_written
def CudnnRNNV3(
    *,
    input: Any,
    input_h: Any,
    input_c: Any,
    params: Any,
    sequence_lengths: Any,
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
) -> Any:
    """A stack of recurrent layers over sequences of any length; ``tf.raw_ops.CudnnRNNV3``.

    Args:
      input: [T, B, I], or [B, T, I] unless `time_major`. What lies past a length is not read.
      input_h: [L*D, B, P], or [B, L*D, P] unless `time_major`.
      input_c: [L*D, B, H], or [B, L*D, H] unless `time_major`; not read unless rnn_mode is "lstm".
      params: [params_size], in cuDNN's layout.
      sequence_lengths: int32 [B], each between 0 and T, in any order.
      num_proj: where positive, the outputs of an LSTM are projected to this many; at most H.

    Returns:
      namedtuple (output [T, B, D*P] or [B, T, D*P], zero past each length; output_h and output_c,
      the states after each sequence's last step, shaped as the initial ones, which they equal where
      a length is 0; output_c a scalar unless rnn_mode is "lstm"; reserve_space, what the gradient
      needs, a scalar unless `is_training`; host_reserved: int8, a scalar).

    Gradients: of input, input_h, input_c and params. ValueError unless `is_training`.
    """
    return _with_static_shapes(call("tf_lstm_ops_cudnn_rnnv3", locals()))


@as_written
def CudnnRNNBackprop(
    *,
    input: Any,
    input_h: Any,
    input_c: Any,
    params: Any,
    output: Any,
    output_h: Any,
    output_c: Any,
    output_backprop: Any,
    output_h_backprop: Any,
    output_c_backprop: Any,
    reserve_space: Any,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> Any:
    """Gradient of CudnnRNN; ``tf.raw_ops.CudnnRNNBackprop``.

    Args:
      input, input_h, input_c, params: as CudnnRNN took them.
      output, output_h, output_c, reserve_space: as it returned them, with is_training=True.
      output_backprop, output_h_backprop, output_c_backprop: gradients by its first three outputs.

    Returns:
      namedtuple (input_backprop, input_h_backprop, input_c_backprop, params_backprop), shaped as
      the inputs; input_c_backprop is zero unless rnn_mode is "lstm".

    Raises:
      InvalidArgumentError: also where reserve_space is not of a call with the same arguments.
    """
    return call("tf_lstm_ops_cudnn_rnn_backprop", locals())


@as_written
def CudnnRNNBackpropV2(
    *,
    input: Any,
    input_h: Any,
    input_c: Any,
    params: Any,
    output: Any,
    output_h: Any,
    output_c: Any,
    output_backprop: Any,
    output_h_backprop: Any,
    output_c_backprop: Any,
    reserve_space: Any,
    host_reserved: Any,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> Any:
    """Gradient of CudnnRNNV2, as CudnnRNNBackprop; ``tf.raw_ops.CudnnRNNBackpropV2``.

    Args:
      host_reserved: as CudnnRNNV2 returned it; not read.
      The others: as in CudnnRNNBackprop.
    """
    return call("tf_lstm_ops_cudnn_rnn_backprop_v2", locals())


@as_written
def CudnnRNNBackpropV3(
    *,
    input: Any,
    input_h: Any,
    input_c: Any,
    params: Any,
    sequence_lengths: Any,
    output: Any,
    output_h: Any,
    output_c: Any,
    output_backprop: Any,
    output_h_backprop: Any,
    output_c_backprop: Any,
    reserve_space: Any,
    host_reserved: Any,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    time_major: bool = True,
    name: str | None = None,
) -> Any:
    """Gradient of CudnnRNNV3, as CudnnRNNBackprop; ``tf.raw_ops.CudnnRNNBackpropV3``.

    Args:
      sequence_lengths: int32 [B], as CudnnRNNV3 took them.
      host_reserved: as it returned it; not read.
      The others: as in CudnnRNNBackprop, shaped as CudnnRNNV3 took and returned them.

    Returns:
      As CudnnRNNBackprop; input_backprop is zero past each length.
    """
    return call("tf_lstm_ops_cudnn_rnn_backprop_v3", locals())


@as_written
def CudnnRNNParamsSize(
    *,
    num_layers: Any,
    num_units: Any,
    input_size: Any,
    T: Any,
    S: Any,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    name: str | None = None,
) -> Any:
    """Number of elements of a model's params; ``tf.raw_ops.CudnnRNNParamsSize``.

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I.
      T: the type of the params. S: the type of the result, int32 or int64.

    Returns:
      [1] of S.
    """
    return call("tf_lstm_ops_cudnn_rnn_params_size", locals())


@as_written
def CudnnRNNCanonicalToParams(
    *,
    num_layers: Any,
    num_units: Any,
    input_size: Any,
    weights: Any,
    biases: Any,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> Any:
    """A model's params from its matrices and vectors; ``tf.raw_ops.CudnnRNNCanonicalToParams``.

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I.
      weights: list; of each layer and direction, in this order, the input matrices of its gates,
        [H, I] or [H, D*H], the recurrent ones [H, H]; gates in cuDNN's order, i, f, c, o
        or r, u, n. The first layer's input matrices are empty where the input is skipped.
      biases: list; of each layer and direction the gates' input biases [H], then the recurrent
        ones.

    Returns:
      params [params_size].
    """
    return call("tf_lstm_ops_cudnn_rnn_canonical_to_params", locals())


@as_written
def CudnnRNNParamsToCanonical(
    *,
    num_layers: Any,
    num_units: Any,
    input_size: Any,
    params: Any,
    num_params: Any,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> Any:
    """A model's matrices and vectors from its params; ``tf.raw_ops.CudnnRNNParamsToCanonical``.

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I.
      params: [params_size].
      num_params: length of each of the two lists returned.

    Returns:
      namedtuple (weights, biases): the lists that CudnnRNNCanonicalToParams takes.
    """
    return call("tf_lstm_ops_cudnn_rnn_params_to_canonical", locals())


@as_written
def CudnnRNNCanonicalToParamsV2(
    *,
    num_layers: Any,
    num_units: Any,
    input_size: Any,
    weights: Any,
    biases: Any,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    name: str | None = None,
) -> Any:
    """A model's params from its matrices and vectors; ``tf.raw_ops.CudnnRNNCanonicalToParamsV2``.

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I.
      weights: list; of each layer and direction, in this order, the input matrices of its gates,
        [H, I] or [H, D*P], the recurrent ones [H, P], and with a projection its matrix
        [P, H]; gates in cuDNN's order, i, f, c, o or r, u, n. The first layer's input matrices are
        empty where the input is skipped.
      biases: list; of each layer and direction the gates' input biases [H], then the recurrent
        ones.

    Returns:
      params [params_size].
    """
    return call("tf_lstm_ops_cudnn_rnn_canonical_to_params_v2", locals())


@as_written
def CudnnRNNParamsToCanonicalV2(
    *,
    num_layers: Any,
    num_units: Any,
    input_size: Any,
    params: Any,
    num_params_weights: Any,
    num_params_biases: Any,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    name: str | None = None,
) -> Any:
    """A model's matrices and vectors from its params; ``tf.raw_ops.CudnnRNNParamsToCanonicalV2``.

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I.
      params: [params_size].
      num_params_weights, num_params_biases: lengths of the two lists returned.

    Returns:
      namedtuple (weights, biases): the lists that CudnnRNNCanonicalToParamsV2 takes.
    """
    return call("tf_lstm_ops_cudnn_rnn_params_to_canonical_v2", locals())
