"""Stacks of small sizes for the tests of StackedLSTM and StackedGRU."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops.keras import StackedGRU, StackedLSTM
from tf_lstm_ops.weights import GRUWeights, LSTMWeights

B, T, I, H = 3, 6, 4, 5  # noqa: E741
KINDS = {
    "lstm": (StackedLSTM, keras.layers.LSTM, LSTMWeights),
    "gru": (StackedGRU, keras.layers.GRU, GRUWeights),
}
# Some dozen sums of ten products of about one in float64, through three layers.
ROUNDING = {"rtol": 1e-11, "atol": 1e-11}


def make(kind: str, rng: np.random.Generator, num_layers: int = 2, **options: Any) -> Any:
    """Our layer, with random weights, biases included."""
    options = {"return_sequences": True, "return_state": True, "dtype": "float64", **options}
    layer = KINDS[kind][0](H, num_layers, **options)
    layer.build((B, T, I))
    layer.set_weights([0.5 * rng.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def weighted(results: list[Any], rng: np.random.Generator) -> Any:
    terms = (tf.reduce_sum(r * rng.normal(size=r.shape) + tf.sin(r)) for r in results)
    return tf.add_n([tf.cast(term, tf.float64) for term in terms])
