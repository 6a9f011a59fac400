"""Scalars of several arrays or tensors, and gradients of them."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf


def weighted_sum(weights: Iterable[Any], values: Iterable[Any]) -> Any:
    """Σ weights∘values, of arrays; complex ones too."""
    return sum(np.sum(w * v) for w, v in zip(weights, values, strict=True))


def tf_weighted_sum(weights: Iterable[Any], values: Iterable[Any]) -> tf.Tensor:
    """Σ weights∘values, of tensors."""
    return tf.add_n([tf.reduce_sum(w * v) for w, v in zip(weights, values, strict=True)])


def gradient(function: Callable[[Any], tf.Tensor], arguments: Any) -> Any:
    """Of a scalar function of tensors, zero where it does not depend on an argument."""
    with tf.GradientTape() as tape:
        tape.watch(arguments)
        value = function(arguments)
    return tape.gradient(value, arguments, unconnected_gradients="zero")
