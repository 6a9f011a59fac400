"""The arguments of a model."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _keras_private
from tf_lstm_ops.keras.requirements import require_model


def signature(model: keras.Model, batch_size: int | None = None) -> list[Any]:
    """The positional arguments of a model, as ``model.export`` finds them.

    Args:
      model: the model.
      batch_size: the first dimension of all inputs; None: unknown.

    Returns:
      One structure of ``tf.TensorSpec`` for each argument. A functional model has one argument.

    Raises:
      TypeError: model is not a ``keras.Model``; a model of tf_keras is not one.
      ValueError: the model is not built; batch_size is not positive.
    """
    require_model(model)
    if batch_size is not None and not (isinstance(batch_size, int) and batch_size > 0):
        raise ValueError(f"batch_size must be None or positive. Received: batch_size={batch_size}")

    def spec(argument: Any) -> tf.TensorSpec:
        return tf.TensorSpec([batch_size, *argument.shape[1:]], argument.dtype, argument.name)

    return list(keras.tree.map_structure(spec, _keras_private.input_signature(model)))
