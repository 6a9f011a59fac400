"""cuDNN's parameter buffer: its size, and conversion from and to the matrices of the gates.

I input size, H cell size (number of units), P hidden size, L layers, D directions. The buffer has
all matrices, layer by layer, then all biases. The model's attributes are those of `CudnnRNN`;
dropout and its seeds do not affect the results.
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
    """Size of a model's params; ``tf.raw_ops.CudnnRNNParamsSize``.

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I.
      T: the type of the params. The result does not depend on it.
      S: the type of the result, int32 or int64.
      rnn_mode, input_mode, direction, dropout, seed, seed2, num_proj: the model's attributes.
      name: of the op in a graph.

    Returns:
      [1] of S, the number of elements.

    Raises:
      InvalidArgumentError: an argument is not a scalar of its type, or is out of range.
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
      num_layers, num_units, input_size: int32 scalars L, H and I.
      weights: list. For each layer and direction the input matrices of its gates, [H, I] in the
        first layer and [H, D*P] in the others, then the recurrent ones [H, P], then with a
        projection its matrix [P, H]. Gates are in cuDNN's order, i, f, c, o or r, u, n. The first
        layer's input matrices are empty where the input is skipped.
      biases: list. For each layer and direction the input biases of the gates, [H] each, then the
        recurrent ones.
      rnn_mode, input_mode, direction, dropout, seed, seed2, num_proj: the model's attributes.
      name: of the op in a graph.

    Returns:
      params [params_size], a copy in cuDNN's layout.

    Raises:
      InvalidArgumentError: a list is of another length, or an element of another size or type.
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

    Args:
      num_layers, num_units, input_size: int32 scalars L, H and I.
      params: [params_size], in cuDNN's layout.
      num_params_weights, num_params_biases: lengths of the two lists to return.
      rnn_mode, input_mode, direction, dropout, seed, seed2, num_proj: the model's attributes.
      name: of the op in a graph.

    Returns:
      namedtuple (weights, biases): copies, the lists that CudnnRNNCanonicalToParamsV2 takes.

    Raises:
      InvalidArgumentError: params is of another size or type, or a list of another length.
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
      num_layers, num_units, input_size, weights, biases: as in CudnnRNNCanonicalToParamsV2.
      rnn_mode, input_mode, direction, dropout, seed, seed2: the model's attributes.
      name: of the op in a graph.

    Returns:
      params [params_size], a copy in cuDNN's layout.

    Raises:
      InvalidArgumentError: as CudnnRNNCanonicalToParamsV2.
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
      num_layers, num_units, input_size, params: as in CudnnRNNParamsToCanonicalV2.
      num_params: length of each of the two lists to return.
      rnn_mode, input_mode, direction, dropout, seed, seed2: the model's attributes.
      name: of the op in a graph.

    Returns:
      namedtuple (weights, biases): copies, the lists that CudnnRNNCanonicalToParams takes.

    Raises:
      InvalidArgumentError: as CudnnRNNParamsToCanonicalV2.
    """
    return call("CudnnRNNParamsToCanonical", locals())
