"""Calls without rows or steps: results, first and second derivatives, in each kind of function."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

SIZES = [{"batch": 0}, {"time": 0}, {"batch": 0, "time": 0}]
MODES = ["eager", "unknown sizes", "known sizes"]


class Found(NamedTuple):
    """Of a function of the arguments.

    first: the gradients by the arguments, with ones as the gradients of the results.
    second: the gradients by the arguments of the sum of `first`.
    """

    results: list[np.ndarray]
    first: list[np.ndarray]
    second: list[np.ndarray]


def derivatives(function: Callable[..., Any], arguments: Sequence[tf.Tensor], mode: str) -> Found:
    """`function` returns tensors of floating point. In "unknown sizes" the sizes that are zero are
    not known while the function is traced. What is not connected has a gradient of zeros."""

    def evaluate(*values: tf.Tensor) -> list[list[tf.Tensor]]:
        zeros = {"unconnected_gradients": tf.UnconnectedGradients.ZERO}
        with tf.GradientTape() as outer:
            outer.watch(values)
            with tf.GradientTape() as inner:
                inner.watch(values)
                results = list(function(*values))
            first = inner.gradient(results, values, **zeros)
        return [results, first, outer.gradient(first, values, **zeros)]

    leave_nan(arguments)
    if mode == "unknown sizes":
        known = [tf.TensorSpec([n or None for n in v.shape], v.dtype) for v in arguments]
        evaluate = tf.function(evaluate, input_signature=known)
    elif mode != "eager":
        evaluate = tf.function(evaluate, jit_compile=mode == "xla")
    return Found(*([np.array(v) for v in part] for part in evaluate(*arguments)))


def leave_nan(arguments: Sequence[tf.Tensor | tf.TensorSpec]) -> None:
    """The memory that TensorFlow hands out next for these shapes holds NaN, which stays in what is
    not written."""
    kept = [tf.fill(v.shape, tf.constant(np.nan, v.dtype)) for v in arguments for _ in range(4)]
    del kept


def assert_zero(got: np.ndarray, shape: Sequence[int]) -> None:
    np.testing.assert_array_equal(got, np.zeros(shape, got.dtype), strict=True)


def assert_ones(got: np.ndarray, shape: Sequence[int]) -> None:
    np.testing.assert_array_equal(got, np.ones(shape, got.dtype), strict=True)
