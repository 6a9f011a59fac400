"""Weights of fewer bits: int8 with scales, and bfloat16."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LARGEST = np.float32(127)  # of the integers; -128 is not used


def _quantized(matrix: Array, axis: int = 0) -> tuple[Array, Array]:
    """Symmetric integers of a matrix, with the scale of each column or row.

    A weight is q * scale. The scale is the largest absolute value over 127. A column of zeros has
    the scale 0.
    """
    largest = np.maximum(matrix.max(axis, initial=0), -matrix.min(axis, initial=0))
    scales = largest / _LARGEST
    divisors = np.expand_dims(np.where(scales > 0, scales, np.float32(np.inf)), axis)
    # In place, since a matrix may be large. Quotients exceed 127 where the scale is subnormal.
    quotients = matrix / divisors
    np.clip(np.rint(quotients, out=quotients), -_LARGEST, _LARGEST, out=quotients)
    return quotients.astype(np.int8), scales


def bfloat16(values: Array) -> Array:
    """The bits of the nearest bfloat16 of each number, the even one of two.

    Args:
      values: float32, of any shape. A NaN stays a NaN.

    Returns:
      uint16, of the same shape: the upper half of a float32.
    """
    bits = values.view(np.uint32)
    halves = bits >> 16
    rounded = (bits + (0x7FFF + (halves & 1))) >> 16
    return np.where(np.isnan(values), halves | 0x40, rounded).astype(np.uint16)


def int8_bytes(values: Array, by_row: bool) -> Array:
    """A matrix as a file has it: the scales, then the integers.

    Args:
      values: float32 [..., columns], finite. All axes but the last are the depth.
      by_row: whether each row has a scale, else each column.

    Returns:
      uint8 [4 * scales + depth * columns].
    """
    q, scales = _quantized(values.reshape(-1, values.shape[-1]), int(by_row))
    parts = scales.astype("<f4").view(np.uint8), q.reshape(-1).view(np.uint8)
    return np.concatenate(parts)
