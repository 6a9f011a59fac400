"""The Keras models of the rows of models, with layers of this package or stock layers."""

from __future__ import annotations

import importlib
from typing import Any

import keras
import tensorflow as tf

from peers.cases import Row
from peers.frameworks import Prepared
from peers.frameworks.tensorflow import floats, set_threads
from peers.models import Conv, Dense, Embed, Layer, ModelProblem, Pool, Recurrent


def build(row: Row, problem: ModelProblem, threads: int, *, ours: bool) -> Prepared:
    """Makes a call of a model in a tf.function.

    Args:
      row: the row of a model.
      problem: its data.
      threads: the number of threads.
      ours: whether to use this package's recurrent layers.

    Returns:
      The call to time.
    """
    set_threads(threads)
    model = keras_model(row, problem, ours)
    x = tf.constant(problem.x)

    @tf.function
    def inference(x: Any) -> Any:
        return model(x, training=False)

    return Prepared(lambda: inference(x), lambda y: {"output": floats(y)})


def keras_model(row: Row, problem: ModelProblem, ours: bool) -> keras.Model:
    """Makes the model with the weights of a row.

    Args:
      row: the row of a model.
      problem: its data.
      ours: whether to use this package's recurrent layers.

    Returns:
      The model.
    """
    module = importlib.import_module("tf_lstm_ops").keras if ours else keras.layers
    made = [(layer, weights, _layers(layer, module)) for layer, weights in problem.layers]
    x = keras.Input(problem.x.shape[1:], row.batch, dtype=problem.x.dtype.name)
    model = keras.Sequential([x, *(each for _, _, some in made for each in some)])
    for layer, weights, some in made:
        if isinstance(layer, Recurrent):
            some[0].set_weights(weights.to_keras())
            continue
        arrays = iter(weights.values())
        for each in some:
            each.set_weights([next(arrays) for _ in each.weights])
    return model


def _layers(layer: Layer, module: Any) -> list[keras.Layer]:
    """The layers, whose weights are in the order of the arrays of the problem."""
    match layer:
        case Conv(units, size, padding, normalized):
            if not normalized:
                return [keras.layers.Conv1D(units, size, padding=padding, activation="relu")]
            conv = keras.layers.Conv1D(units, size, padding=padding)
            return [conv, keras.layers.BatchNormalization(), keras.layers.ReLU()]
        case Pool(size):
            return [keras.layers.MaxPooling1D(size)]
        case Embed(vocabulary, units, mask_zero):
            return [keras.layers.Embedding(vocabulary, units, mask_zero=mask_zero)]
        case Recurrent(units, directions, sequences):
            lstm = module.LSTM(units, return_sequences=sequences)
            return [lstm if directions == 1 else module.Bidirectional(lstm)]
        case Dense(units):
            return [keras.layers.Dense(units, activation="softmax")]
