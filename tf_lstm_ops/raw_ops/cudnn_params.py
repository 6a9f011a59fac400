"""cuDNN's parameter buffer: its size, and conversion from and to the matrices of the gates.

I input size, H cell size (number of units), P hidden size, L layers, D directions. The buffer has
all matrices, layer by layer, then all biases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tf_lstm_ops.raw_ops.common import call, public

if TYPE_CHECKING:
    from tf_lstm_ops.raw_ops.types import (
        CudnnRNNParamsToCanonicalResults,
        CudnnRNNParamsToCanonicalV2Results,
        DTypeLike,
        Tensor,
        TensorLike,
    )


@public
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
    """
    return call("CudnnRNNParamsSize", locals())


@public
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
    """A model's params from its matrices; ``tf.raw_ops.CudnnRNNCanonicalToParamsV2``."""
    return call("CudnnRNNCanonicalToParamsV2", locals())


@public
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
    """
    return call("CudnnRNNParamsToCanonicalV2", locals())


@public
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
    """CudnnRNNCanonicalToParamsV2 without projection; ``tf.raw_ops.CudnnRNNCanonicalToParams``."""
    return call("CudnnRNNCanonicalToParams", locals())


@public
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
    """CudnnRNNParamsToCanonicalV2 without projection; ``tf.raw_ops.CudnnRNNParamsToCanonical``."""
    return call("CudnnRNNParamsToCanonical", locals())
