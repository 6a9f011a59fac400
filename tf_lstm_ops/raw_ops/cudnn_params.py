"""cuDNN's parameter buffer: its size, and conversion from and to the matrices of the gates.

I input size, H cell size (number of units), P hidden size, L layers, D directions. The buffer has
all matrices, layer by layer, then all biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tf_lstm_ops.raw_ops.common import as_written, call

if TYPE_CHECKING:
    from tf_lstm_ops.raw_ops.types import (
        CudnnRNNParamsToCanonicalResults,
        CudnnRNNParamsToCanonicalV2Results,
        DTypeLike,
        Tensor,
        TensorLike,
    )


@as_written
def CudnnRNNParamsSize(
    *,
    num_layers: TensorLike,
    num_units: TensorLike,
    input_size: TensorLike,
    T: DTypeLike,
    S: DTypeLike,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    name: str | None = None,
) -> Tensor:
    """The number of elements of a model's params; ``tf.raw_ops.CudnnRNNParamsSize``.

    >>> import tensorflow as tf
    >>> from tf_lstm_ops import raw_ops
    >>> raw_ops.CudnnRNNParamsSize(
    ...     num_layers=1, num_units=4, input_size=3, T=tf.float32, S=tf.int32
    ... ).numpy().tolist()
    [144]

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I, all positive.
      T: the type of the params. The result does not depend on it. No default.
      S: the type of the result, int32 or int64. No default.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout, seed, seed2: no effect on the result. Defaults 0.0, 0 and 0.
      num_proj: the size P to which an LSTM projects its outputs, at most H. Default 0: no
        projection.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      [1] of the type S, the number of elements.

    Raises:
      InvalidArgumentError: an argument is no scalar of its type, or its value is not allowed.
    """
    return call("CudnnRNNParamsSize", locals())


@as_written
def CudnnRNNCanonicalToParamsV2(
    *,
    num_layers: TensorLike,
    num_units: TensorLike,
    input_size: TensorLike,
    weights: Sequence[TensorLike],
    biases: Sequence[TensorLike],
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    name: str | None = None,
) -> Tensor:
    """A model's params from its matrices; ``tf.raw_ops.CudnnRNNCanonicalToParamsV2``.

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I, all positive.
      weights: a list. For each layer and direction it has the input matrices of the gates, [H, I]
        in the first layer and [H, D*P] in the others, then the recurrent matrices [H, P], then the
        projection [P, H] if there is one. The gates are in cuDNN's order, i, f, c, o or r, u, n.
        The input matrices of a skipped input are [H, 0].
      biases: a list. For each layer and direction it has the input biases of the gates, [H] each,
        then the recurrent ones.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout, seed, seed2: no effect on the result. Defaults 0.0, 0 and 0.
      num_proj: the size P to which an LSTM projects its outputs, at most H. Default 0: no
        projection.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      [params_size], a copy of the matrices and biases in cuDNN's layout.

    Raises:
      InvalidArgumentError: a list has the wrong length, an element the wrong size or type, or an
        attribute a value that is not allowed.
    """
    return call("CudnnRNNCanonicalToParamsV2", locals())


@as_written
def CudnnRNNParamsToCanonicalV2(
    *,
    num_layers: TensorLike,
    num_units: TensorLike,
    input_size: TensorLike,
    params: TensorLike,
    num_params_weights: int,
    num_params_biases: int,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    num_proj: int = 0,
    name: str | None = None,
) -> CudnnRNNParamsToCanonicalV2Results:
    """A model's matrices from its params; ``tf.raw_ops.CudnnRNNParamsToCanonicalV2``.

    >>> import tensorflow as tf
    >>> from tf_lstm_ops import raw_ops
    >>> canonical = raw_ops.CudnnRNNParamsToCanonicalV2(
    ...     num_layers=1,
    ...     num_units=4,
    ...     input_size=3,
    ...     params=tf.ones([144]),
    ...     num_params_weights=8,
    ...     num_params_biases=8,
    ... )
    >>> W_i, W_f, W_c, W_o, R_i, R_f, R_c, R_o = canonical.weights
    >>> W_i.shape, R_i.shape
    (TensorShape([4, 3]), TensorShape([4, 4]))

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I, all positive.
      params: [params_size], all weights in cuDNN's layout.
      num_params_weights, num_params_biases: the lengths of the two lists to return. No default.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout, seed, seed2: no effect on the result. Defaults 0.0, 0 and 0.
      num_proj: the size P to which an LSTM projects its outputs, at most H. Default 0: no
        projection.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      Copies as a named tuple with the fields weights and biases, the lists that
      CudnnRNNCanonicalToParamsV2 takes.

    Raises:
      InvalidArgumentError: params has the wrong size or type, a list the wrong length, or an
        attribute a value that is not allowed.
    """
    return call("CudnnRNNParamsToCanonicalV2", locals())


@as_written
def CudnnRNNCanonicalToParams(
    *,
    num_layers: TensorLike,
    num_units: TensorLike,
    input_size: TensorLike,
    weights: Sequence[TensorLike],
    biases: Sequence[TensorLike],
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> Tensor:
    """CudnnRNNCanonicalToParamsV2 without projection; ``tf.raw_ops.CudnnRNNCanonicalToParams``.

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I, all positive.
      weights: a list. For each layer and direction it has the input matrices of the gates, [H, I]
        in the first layer and [H, D*H] in the others, then the recurrent matrices [H, H]. The gates
        are in cuDNN's order, i, f, c, o or r, u, n. The input matrices of a skipped input are [H,
        0].
      biases: a list. For each layer and direction it has the input biases of the gates, [H] each,
        then the recurrent ones.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout, seed, seed2: no effect on the result. Defaults 0.0, 0 and 0.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      [params_size], a copy of the matrices and biases in cuDNN's layout.

    Raises:
      InvalidArgumentError: a list has the wrong length, an element the wrong size or type, or an
        attribute a value that is not allowed.
    """
    return call("CudnnRNNCanonicalToParams", locals())


@as_written
def CudnnRNNParamsToCanonical(
    *,
    num_layers: TensorLike,
    num_units: TensorLike,
    input_size: TensorLike,
    params: TensorLike,
    num_params: int,
    rnn_mode: str = "lstm",
    input_mode: str = "linear_input",
    direction: str = "unidirectional",
    dropout: float = 0.0,
    seed: int = 0,
    seed2: int = 0,
    name: str | None = None,
) -> CudnnRNNParamsToCanonicalResults:
    """CudnnRNNParamsToCanonicalV2 without projection; ``tf.raw_ops.CudnnRNNParamsToCanonical``.

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I, all positive.
      params: [params_size], all weights in cuDNN's layout.
      num_params: the length of each of the two lists to return. No default.
      rnn_mode: "lstm", "gru", "rnn_tanh" or "rnn_relu". Default "lstm".
      input_mode: "linear_input"; "skip_input": the first layer adds its input to every gate without
        a matrix, which requires I == H; "auto_select": "skip_input" if I == H, else "linear_input".
        Default "linear_input".
      direction: "unidirectional" (D = 1) or "bidirectional" (D = 2). Default "unidirectional".
      dropout, seed, seed2: no effect on the result. Defaults 0.0, 0 and 0.
      name: the name of the op in a graph. Default: the op's own name.

    Returns:
      Copies as a named tuple with the fields weights and biases, the lists that
      CudnnRNNCanonicalToParams takes.

    Raises:
      InvalidArgumentError: params has the wrong size or type, a list the wrong length, or an
        attribute a value that is not allowed.
    """
    return call("CudnnRNNParamsToCanonical", locals())
