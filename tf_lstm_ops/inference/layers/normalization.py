"""Normalisation layers, as they compute in inference. They normalise the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.layers import checks
from tf_lstm_ops.inference.layers.base import Record


class BatchNormalization(Record):
    """(x - mean) / sqrt(variance + epsilon) · gamma + beta.

    The arguments have names only, since programs order the arrays in different ways. A session
    makes it part of a Dense or convolution before or behind it where it can.

    Args:
      gamma: [C]; None: ones.
      beta: [C]; None: zeros.
      mean: [C].
      variance: [C].
      epsilon: is added to the variance.
      name: for messages.

    Raises:
      ValueError: a shape is wrong, or a result is not finite.
    """

    def __init__(
        self,
        *,
        gamma: Any = None,
        beta: Any = None,
        mean: Any,
        variance: Any,
        epsilon: float = 1e-3,
        name: str | None = None,
    ) -> None:
        mean = checks.weight("mean", mean, [None]).astype(np.float64)
        sizes = [mean.size]
        variance = checks.weight("variance", variance, sizes).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            scale = 1 / np.sqrt(variance + epsilon)
        if gamma is not None:
            scale = scale * checks.weight("gamma", gamma, sizes)
        offset = -mean * scale
        if beta is not None:
            offset = offset + checks.weight("beta", beta, sizes)
        arrays = {"kernel": scale.astype(np.float32), "bias": offset.astype(np.float32)}
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise ValueError("gamma / sqrt(variance + epsilon) and the offset must be finite")
        record = file.Layer(
            name or "BatchNormalization", file.AFFINE, input_size=mean.size, arrays=[arrays]
        )
        super().__init__(record, passes_mask=True)


def _record(name: str, rms: int, gamma: Any, beta: Any, size: int, epsilon: float) -> file.Layer:
    arrays = {}
    if gamma is not None:
        arrays["input_gamma"] = checks.weight("gamma", gamma, [size])
    if beta is not None:
        arrays["bias"] = checks.weight("beta", beta, [size])
    return file.Layer(
        name,
        file.NORMALIZATION,
        input_size=size,
        epsilon=float(np.float32(epsilon)),
        ints=(rms,),
        arrays=[arrays],
    )


class LayerNormalization(Record):
    """(x - mean) / sqrt(variance + epsilon) · gamma + beta, of each row.

    Args:
      size: C.
      gamma: [C]; None: ones.
      beta: [C]; None: zeros.
      epsilon: is added to the variance, positive.
      name: for messages.

    Raises:
      ValueError: a shape is wrong.
    """

    def __init__(
        self,
        size: int,
        gamma: Any = None,
        beta: Any = None,
        epsilon: float = 1e-3,
        name: str | None = None,
    ) -> None:
        size = checks.size("size", size)
        super().__init__(_record(name or "LayerNormalization", 0, gamma, beta, size, epsilon), True)


class RMSNormalization(Record):
    """x / sqrt(mean(x²) + epsilon) · scale, of each row.

    Args:
      size: C.
      scale: [C]; None: ones.
      epsilon: is added to the mean, positive.
      name: for messages.

    Raises:
      ValueError: a shape is wrong.
    """

    def __init__(
        self, size: int, scale: Any = None, epsilon: float = 1e-6, name: str | None = None
    ) -> None:
        size = checks.size("size", size)
        super().__init__(_record(name or "RMSNormalization", 1, scale, None, size, epsilon), True)
