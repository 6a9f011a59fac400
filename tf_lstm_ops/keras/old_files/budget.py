"""Limits the weights of a model to those that its file can have."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tf_lstm_ops.files import limits


@contextlib.contextmanager
def limited(numbers: int) -> Iterator[None]:
    """A context in which Keras makes no more variables than the arrays of a file fill.

    Keras makes the variables that the configuration asks for before their values are known.

    Args:
      numbers: the count of numbers in the arrays of the file.

    Yields:
      None.

    Raises:
      ValueError: in the context a variable is too many, or there is no memory for an array.
    """
    left = limits.KERAS_TIMES * numbers + limits.KERAS_MORE

    def creator(next_creator: Any, **options: Any) -> Any:
        nonlocal left
        left -= _size(options.get("initial_value"))
        if left < 0:
            raise ValueError(f"its weights are larger than those of the file, {numbers} numbers")
        return next_creator(**options)

    with tf.variable_creator_scope(creator):
        try:
            yield
        except (tf.errors.ResourceExhaustedError, MemoryError) as error:
            raise ValueError("its layers need more memory than there is") from error


def _size(value: Any) -> int:
    """The count of numbers of an initial value, of which a function is not run."""
    if callable(value):
        try:
            with tf.Graph().as_default():
                value = value()
        except TypeError as error:
            raise ValueError(f"its initial values cannot be computed: {error}") from error
    return int(value.shape.num_elements() or 0) if isinstance(value, tf.Tensor) else 0
