"""Normalisation layers, as they compute in inference. They normalise the last axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.layers import checks
from tf_lstm_ops.inference.layers.base import Record


def affine(name: str, scale: Any, offset: Any) -> Record:
    """x · scale + offset.

    Args:
      name: for messages.
      scale: [C], of the last axis.
      offset: [C].

    Returns:
      The layer.
    """
    arrays = {"kernel": np.asarray(scale, np.float32), "bias": np.asarray(offset, np.float32)}
    record = file.Layer(name, file.AFFINE, input_size=arrays["bias"].size, arrays=[arrays])
    return Record(record, passes_mask=True)


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
        record = affine(name or "BatchNormalization", scale, offset).record
        if not all(np.isfinite(array).all() for array in record.arrays[0].values()):
            raise ValueError("gamma / sqrt(variance + epsilon) and the offset must be finite")
        super().__init__(record, passes_mask=True)


_LAYER, _RMS, _UNIT, _GROUPS = range(4)  # kinds of normalisations in the file


def _record(
    name: str, kind: Sequence[int], gamma: Any, beta: Any, size: int, epsilon: float
) -> file.Layer:
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
        ints=kind,
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
        super().__init__(
            _record(name or "LayerNormalization", (_LAYER,), gamma, beta, size, epsilon), True
        )


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
        super().__init__(
            _record(name or "RMSNormalization", (_RMS,), scale, None, size, epsilon), True
        )


class UnitNormalization(Record):
    """x / max(length, floor), of each row. The length is the square root of the sum of squares.

    Args:
      size: C; None: any.
      floor: the least divisor, 0 or positive. With 0 a row of zeros becomes NaN.
      name: for messages.

    Raises:
      ValueError: an argument is wrong.
    """

    def __init__(
        self, size: int | None = None, floor: float = 1e-12, name: str | None = None
    ) -> None:
        floor = float(floor)
        if not floor >= 0:
            raise ValueError(f"floor must be 0 or positive. Received: floor={floor}")
        record = file.Layer(
            name or "UnitNormalization",
            file.NORMALIZATION,
            input_size=0 if size is None else checks.size("size", size),
            ints=(_UNIT,),
            numbers=(floor,),
        )
        super().__init__(record, True)


class GroupNormalization(Record):
    """(x - mean) / sqrt(variance + epsilon) · gamma + beta of [B, T, C].

    Mean and variance are those of all steps of a group of neighbouring channels. With as many
    groups as channels it is instance normalisation.

    Args:
      size: C.
      groups: the number of groups, a divisor of C.
      gamma: [C]; None: ones.
      beta: [C]; None: zeros.
      epsilon: is added to the variance, positive.
      name: for messages.

    Raises:
      ValueError: a shape is wrong, or groups is no divisor of C.
    """

    def __init__(
        self,
        size: int,
        groups: int,
        gamma: Any = None,
        beta: Any = None,
        epsilon: float = 1e-3,
        name: str | None = None,
    ) -> None:
        size, groups = checks.size("size", size), checks.size("groups", groups)
        if size % groups:
            raise ValueError(f"groups must divide size, {size}. Received: groups={groups}")
        record = _record(
            name or "GroupNormalization", (_GROUPS, groups), gamma, beta, size, epsilon
        )
        super().__init__(record, True)
