"""The inputs that the layers give to their ops."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _tf_private


def _required(value: Any) -> Any:
    """Converts a value to an input of an op, as `optional` returns it."""
    if not tf.executing_eagerly():
        return tf.convert_to_tensor(value)
    return value.value if isinstance(value, keras.Variable) else tf.convert_to_tensor(value)


def optional(value: Any, dtype: Any) -> Any:
    """Converts an optional value to an input of an op. An absent input has the shape [0].

    Args:
      value: a weight of a layer, or another tensor; None if it is absent.
      dtype: the type of the absent input.

    Returns:
      A tensor; in eager code the ``tf.Variable`` of a weight, which an op reads faster than
      ``tf.convert_to_tensor``.
    """
    if value is not None:
        return _required(value)
    if not tf.executing_eagerly():
        return tf.zeros([0], dtype)
    return _absent(dtype, *_tf_private.eager_place())


@functools.lru_cache(maxsize=64)
def _absent(dtype: Any, _: Any, __: str | None) -> Any:
    """The absent input of eager calls, one for each context and tf.device."""
    return tf.zeros([0], dtype)


def is_recorded(inputs: Iterable[Any]) -> bool:
    """Whether a ``tf.GradientTape`` records a call of an op, whose gradient may thus follow.

    While a function is traced, the tapes around the trace count, too.

    Args:
      inputs: those of the op: tensors, variables or other values that TensorFlow converts.

    Returns:
      True if a tape that is not stopped watches an input. Forward accumulators do not count.
    """
    return _tf_private.may_record() and any(map(_tf_private.is_watched, inputs))
