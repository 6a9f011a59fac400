"""Random choices, shapes and tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .call import Array, Shape

# Where products of sizes overflow, and where narrower types end.
HUGE = [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**61, 2**62, 2**63 - 1]
INT32 = [-(2**31), -1, 0, 1, 2**30, 2**31 - 1]


def choose(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    return values[rng.integers(len(values))]


def happens(rng: np.random.Generator, probability: float) -> bool:
    return rng.random() < probability


def wrong_shape(rng: np.random.Generator, right: Shape) -> Shape:
    """Any small shape, or the right one with a dimension changed, dropped or added. Sometimes of no
    elements with a dimension as large as TensorFlow takes."""
    kind = choose(rng, ["any", "change", "change", "drop", "add", "huge"])
    if kind == "huge":
        rank = max(2, len(right) + choose(rng, [-1, 0, 0, 0, 1]))
        shape = [int(rng.integers(1, 4)) for _ in range(rank)]
        zero, huge = rng.permutation(rank)[:2]
        shape[zero], shape[huge] = 0, choose(rng, HUGE)
        if shape[huge] >= 2**61:  # else the product of the others overflows for TensorFlow already
            shape = [d if k in (zero, huge) else 1 for k, d in enumerate(shape)]
        return tuple(shape)
    if kind == "any" or not right:
        return tuple(int(rng.integers(0, 7)) for _ in range(rng.integers(0, 6)))
    k = int(rng.integers(len(right)))
    if kind == "drop":
        return right[:k] + right[k + 1 :]
    size = int(rng.integers(0, min(2 * right[k] + 3, 70)))
    return right[:k] + (size,) + (right[k + 1 :] if kind == "change" else right[k:])


def spoil(rng: np.random.Generator, shapes: dict[str, Shape]) -> dict[str, Shape]:
    """Often all shapes, else one or two of them wrong. None is large unless it is empty."""
    spoilt = dict(shapes)
    for _ in range(choose(rng, [0, 0, 0, 1, 1, 2])):
        name = choose(rng, sorted(shapes))
        shape = wrong_shape(rng, shapes[name])
        if 0 in shape or np.prod(shape) < 2**14:
            spoilt[name] = shape
    return spoilt


def is_huge(shapes: dict[str, Shape]) -> bool:
    return any(size >= HUGE[0] for shape in shapes.values() for size in shape)


def uniform(rng: np.random.Generator, shape: Shape, dtype: str = "float64") -> tf.Tensor:
    """Small random elements, of a type that may hold them in fewer bits."""
    if 0 in shape:
        return tf.reshape(tf.zeros([0], tf.as_dtype(dtype)), tf.constant(shape, tf.int64))
    return tf.constant(rng.uniform(-0.5, 0.5, size=shape), tf.as_dtype(dtype))


def wide(tensor: tf.Tensor) -> Array:
    """Floating numbers as float64 for the oracle."""
    return tf.cast(tensor, tf.float64).numpy()
