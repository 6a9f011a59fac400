"""A case as a Keras model of this package's layers."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np

import tf_lstm_ops
from one_row.cases import Case, Layer


def keras_model(case: Case, stateful: bool) -> keras.Model:
    """Makes the model of a case.

    Args:
      case: the case.
      stateful: whether the recurrent layers keep their states.

    Returns:
      A Sequential model from [1, T, I] to [1, T, O], with the same weights in every call.
    """
    layers = [_layer(layer, stateful) for layer in case.layers]
    model = keras.Sequential([keras.Input(batch_shape=(1, case.time, case.inputs)), *layers])
    rng = np.random.default_rng(0)
    for layer in model.layers:
        bound = layer.units**-0.5  # as in PyTorch, so that the gates do not saturate
        layer.set_weights([rng.uniform(-bound, bound, w.shape) for w in layer.get_weights()])
    return model


def _layer(layer: Layer, stateful: bool) -> keras.Layer:
    if layer.kind == "dense":
        return keras.layers.Dense(layer.units, activation="sigmoid")
    options: dict[str, Any] = {"return_sequences": True, "stateful": stateful}
    # The weights are set afterwards. The default initializer takes long for large layers.
    options |= {"recurrent_initializer": "zeros"}
    if layer.kind == "gru":
        return tf_lstm_ops.keras.GRU(layer.units, **options)
    return tf_lstm_ops.keras.LSTM(
        layer.units,
        use_peephole=layer.peephole,
        projection_size=layer.projection or None,
        **options,
    )
