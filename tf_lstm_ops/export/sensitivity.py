"""Which part of a model's outputs an export can be compared by.

A recurrent model may amplify rounding from step to step, up to the size of its outputs. No program
then computes the same numbers, so a difference says nothing. How far the model itself moves when
its inputs move by a rounding error says where that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np


class Rounding(NamedTuple):
    """The rounding of a kind of file.

    Attributes:
      by: the multiple by which it moves a value.
      factor: by which multiple of the movement of the model a right file may differ. Kernels round
        in each step; inputs move once.
      largest: the largest movement in a part that is compared, as a multiple of the output's size.
        Where the model moves further, a right file may differ as much as a wrong one.
    """

    by: float
    factor: float
    largest: float


# Eight float32 epsilons, the error of a sum of some terms.
FLOAT32 = Rounding(2.0**-20, 8.0, 2.0**-7)
Predict = Callable[[list[np.ndarray]], Sequence[Any]]


class Steady(NamedTuple):
    """The part of an output that is compared.

    Attributes:
      elements: boolean, of the shape of the output.
      allowed: float64 of this shape, by how much a right file may differ there.
    """

    elements: np.ndarray
    allowed: np.ndarray


def steady_parts(
    predict: Predict,
    inputs: Sequence[np.ndarray],
    expected: Sequence[Any],
    rounding: Rounding = FLOAT32,
) -> list[Steady]:
    """The parts of a model's outputs that do not move far.

    In an output [B, T, ...] these are the steps before the first and behind the last one that
    moves; other outputs are compared as a whole or not at all.

    Args:
      predict: the model's outputs for inputs.
      inputs: the inputs of the comparison. Those of floats move.
      expected: the model's outputs for them.
      rounding: that of the file.

    Returns:
      A part for each output.
    """
    moved = [[np.zeros(np.shape(each)) for each in expected]]
    if any(np.issubdtype(x.dtype, np.floating) for x in inputs):
        for factor in (1 + rounding.by, 1 - rounding.by):
            outputs = predict([_moved(x, factor) for x in inputs])
            moved.append([_distance(a, b) for a, b in zip(outputs, expected, strict=True)])
    return [
        _steady(np.max(parts, axis=0), np.abs(_wide(each)).max(initial=0), rounding)
        for parts, each in zip(zip(*moved, strict=True), expected, strict=True)
    ]


def not_compared(parts: Sequence[Steady], rounding: Rounding = FLOAT32) -> str:
    """Why a file was not compared as a whole.

    Args:
      parts: what was compared.
      rounding: that of the file.

    Returns:
      The reason, for a message.
    """
    count = sum(part.elements.size for part in parts)
    share = sum(int(part.elements.sum()) for part in parts) / max(count, 1)
    return (
        f"the model amplifies rounding: a change of its inputs by {rounding.by:.0e} changes its "
        f"outputs. {100 * share:.0f} % of the outputs were compared, which change less"
    )


def _moved(x: np.ndarray, factor: float) -> np.ndarray:
    return (x * factor).astype(x.dtype) if np.issubdtype(x.dtype, np.floating) else x


def _wide(value: Any) -> np.ndarray:
    array = np.asarray(value)
    is_number = np.issubdtype(array.dtype, np.number) or array.dtype.kind == "V"  # bfloat16
    return np.nan_to_num(array.astype(np.float64)) if is_number else np.zeros(array.shape)


def _distance(one: Any, other: Any) -> np.ndarray:
    return np.abs(_wide(one) - _wide(other))


def _steady(moved: np.ndarray, size: float, rounding: Rounding) -> Steady:
    """The part of an output of this size that does not move far."""
    others = tuple(k for k in range(moved.ndim) if k != 1) if moved.ndim > 2 else None
    each = np.max(moved, axis=others, keepdims=True, initial=0)  # of a step, or of all elements
    far = np.flatnonzero(each > rounding.largest * size)
    is_steady = np.ones(each.shape, bool)
    if len(far):
        is_steady.reshape(-1)[far[0] : far[-1] + 1] = False
    allowed = np.broadcast_to(rounding.factor * each, moved.shape)
    return Steady(np.broadcast_to(is_steady, moved.shape), allowed)
