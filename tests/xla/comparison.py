"""How a compiled function is compared with the fused kernels outside of it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

# Relative to the largest number of a tensor. Both sides round sums of some dozen terms, in another
# order, over a few steps: some hundred roundings of float64, the error that the package promises
# for float32. Both compute the 16-bit types in float32, but the kernels keep in 16 bits what a
# gradient needs: four units in the last place.
TOLERANCE = {"float16": 2.0**-8, "bfloat16": 2.0**-5, "float32": 2e-6, "float64": 1e-13}
# A second derivative has one more product of such sums in every term.
SECOND_ORDER = 10


def compiled(function: Callable[..., Any], *arguments: Any) -> Any:
    return tf.function(function, jit_compile=True)(*arguments)


def to_numpy(tensor: Any) -> np.ndarray:
    return tf.cast(tensor, tf.float64).numpy()


def assert_agree(got: Any, want: Any, dtype: str = "float64", factor: float = 1) -> None:
    """Of nested tensors: types, shapes, values."""
    tf.nest.assert_same_structure(got, want)
    for k, (a, b) in enumerate(zip(tf.nest.flatten(got), tf.nest.flatten(want), strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape, k
        expected = to_numpy(b)
        scale = max(1.0, np.abs(expected).max(initial=0))
        bound = factor * TOLERANCE[tf.as_dtype(dtype).name] * scale
        np.testing.assert_allclose(to_numpy(a), expected, rtol=0, atol=bound, err_msg=str(k))


def value_and_grads(function: Callable[..., Any], *sources: tf.Tensor) -> Any:
    """The results, and the gradients of Σ result² by the sources."""
    with tf.GradientTape() as tape:
        tape.watch(sources)
        results = function(*sources)
        loss = tf.add_n([tf.reduce_sum(a * a) for a in tf.nest.flatten(results)])
    return results, tape.gradient(loss, sources)


def second_derivatives(function: Callable[..., Any], *sources: tf.Tensor) -> Any:
    """The gradients of Σ gradient² by the sources."""
    with tf.GradientTape() as tape:
        tape.watch(sources)
        _, gradients = value_and_grads(function, *sources)
        penalty = tf.add_n([tf.reduce_sum(g * g) for g in gradients])
    return tape.gradient(penalty, sources)
