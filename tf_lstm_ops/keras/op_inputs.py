"""The inputs that the layers give to their ops."""

from __future__ import annotations

import functools
from typing import Any

import keras
import tensorflow as tf
from tensorflow.python.eager import context


def required(value: Any) -> Any:
    """Converts a value to an input of an op.

    Args:
      value: a weight of a layer, or another tensor.

    Returns:
      A tensor; in eager code the ``tf.Variable`` of a weight, which an op reads faster than
      ``tf.convert_to_tensor``.
    """
    if not tf.executing_eagerly():
        return tf.convert_to_tensor(value)
    return value.value if isinstance(value, keras.Variable) else tf.convert_to_tensor(value)


def optional(value: Any, dtype: Any) -> Any:
    """Converts an optional value to an input of an op. An absent input has the shape [0].

    Args:
      value: as `required` takes it, or None if it is absent.
      dtype: the type of the absent input.

    Returns:
      What `required` returns.
    """
    if value is not None:
        return required(value)
    if not tf.executing_eagerly():
        return tf.zeros([0], dtype)
    eager = context.context()
    return _absent(dtype, eager, eager.device_name)


@functools.lru_cache(maxsize=64)
def _absent(dtype: Any, _: Any, __: str | None) -> Any:
    """The absent input of eager calls, one for each context and tf.device."""
    return tf.zeros([0], dtype)
