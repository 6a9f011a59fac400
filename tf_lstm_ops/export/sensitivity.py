"""Which part of a model's outputs an export can be compared by.

A recurrent model may amplify rounding from step to step, up to the size of its outputs. No program
then computes the same numbers, so a difference says nothing. How far the model itself moves when
its inputs move by a rounding error says where that is so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from tf_lstm_ops import _keras_private


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


def rounding_of(epsilon: float) -> Rounding:
    """The rounding of a file that computes as the model.

    Args:
      epsilon: that of the model's least precise type.

    Returns:
      Eight epsilons, the error of a sum of some terms.
    """
    return Rounding(8 * epsilon, 8.0, max(2.0**-7, 8 * epsilon))


FLOAT32 = rounding_of(2.0**-23)

Predict = Callable[[float], Sequence[Any]]


class Steady(NamedTuple):
    """The part of an output that is compared.

    Attributes:
      elements: boolean, of the shape of the output.
      allowed: float64 of this shape, by how much a right file may differ there.
    """

    elements: np.ndarray
    allowed: np.ndarray


def steady_parts(
    predict: Predict, expected: Sequence[Any], rounding: Rounding = FLOAT32
) -> list[Steady]:
    """The parts of a model's outputs that do not move far.

    In an output [B, T, ...] these are the steps before the first and behind the last one that
    moves; other outputs are compared as a whole or not at all.

    Args:
      predict: the model's outputs where what it reads is multiplied by a factor; see `moved_tables`
        and `moved`.
      expected: the model's outputs.
      rounding: that of the file.

    Returns:
      A part for each output.
    """
    distances = []
    for factor in (1 + rounding.by, 1 - rounding.by):
        outputs = predict(factor)
        pairs = zip(outputs, expected, strict=True)
        distances.append([np.abs(_wide(a) - _wide(b)) for a, b in pairs])
    return [
        _steady(np.max(parts, axis=0), np.abs(_wide(each)).max(initial=0), rounding)
        for parts, each in zip(zip(*distances, strict=True), expected, strict=True)
    ]


def moved(inputs: Sequence[np.ndarray], factor: float) -> list[np.ndarray]:
    """The inputs of a model, those of floats multiplied by a factor.

    Args:
      inputs: the arrays.
      factor: the factor.

    Returns:
      The arrays, of the same types.
    """
    return [(x * factor).astype(x.dtype) if _is_float(x) else x for x in inputs]


@contextlib.contextmanager
def moved_tables(model: keras.Model, factor: float) -> Iterator[None]:
    """A context in which the tables of the embeddings of a model are multiplied by a factor.

    Args:
      model: the model.
      factor: the factor.

    Yields:
      None.
    """
    layers = _keras_private.layers_of(model)
    tables = [
        variable
        for layer in layers
        if isinstance(layer, keras.layers.Embedding)
        for variable in layer.weights
    ]
    before = [keras.ops.convert_to_numpy(table) for table in tables]
    try:
        for table, value in zip(tables, before, strict=True):
            table.assign((value * factor).astype(value.dtype))
        yield
    finally:
        for table, value in zip(tables, before, strict=True):
            table.assign(value)


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
        f"the model amplifies rounding: a change of what it reads by {rounding.by:.0e} changes its "
        f"outputs. {100 * share:.0f} % of the outputs were compared, those which change less, and "
        "with a tolerance that grows with the change"
    )


def _is_float(x: np.ndarray) -> bool:
    return np.issubdtype(x.dtype, np.floating) or x.dtype.name == "bfloat16"


def _wide(value: Any) -> np.ndarray:
    array = np.asarray(value)
    if not (_is_float(array) or array.dtype.kind in "biuc"):
        return np.zeros(array.shape)
    wide = array if array.dtype.kind == "c" else array.astype(np.float64)
    return np.nan_to_num(wide)


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
