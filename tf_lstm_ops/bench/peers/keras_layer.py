"""Keras' layers in a tf.function, and in model.fit: this package's and the stock ones."""

from __future__ import annotations

import importlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops.bench.cases import WEIGHTS, Problem, Row, gradient_pieces, pieces
from tf_lstm_ops.bench.peers import Prepared
from tf_lstm_ops.bench.peers.tensorflow import floats, set_threads
from tf_lstm_ops.weights.arrays import Array

FIT_STEPS = 40  # as many as make an epoch's own cost small


def build(
    row: Row,
    problem: Problem,
    threads: int,
    *,
    ours: bool = False,
    jit_compile: bool = False,
    dtype: str | None = None,
) -> Prepared:
    """`dtype` instead of the row's."""
    set_threads(threads)
    layers = importlib.import_module("tf_lstm_ops").keras if ours else keras.layers
    layer_class = {"lstm": layers.LSTM, "gru": layers.GRU}[row.cell]
    if row.task == "fit":
        return _fit(row, problem, layer_class, jit_compile)
    dtype = dtype or row.dtype
    stack = [_layer(layer_class, row, problem, k, dtype) for k in range(row.layers)]
    x, upstream = tf.constant(problem.x, dtype), tf.constant(problem.upstream, dtype)
    mask = None if problem.valid is None else tf.constant(problem.valid)

    def forward(x: Any, training: bool) -> Any:
        for layer in stack:
            x = layer(x, mask=mask, training=training)
        return x

    @tf.function(jit_compile=jit_compile)
    def inference(x: Any) -> Any:
        return forward(x, training=False)

    @tf.function(jit_compile=jit_compile)
    def training(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = forward(x, training=True)
        sources = [x, [layer.trainable_variables for layer in stack]]
        return output, tape.gradient(output, sources, output_gradients=upstream)

    def gradients(found: Any) -> dict[str, Array]:
        output, (of_x, of_layers) = found
        of_weights = [[floats(g) for g in of_layer] for of_layer in of_layers]
        return {
            **pieces(floats(output), problem),
            **gradient_pieces(floats(of_x), WEIGHTS[row.cell].from_keras(of_weights)),
        }

    if row.task == "training":
        training.get_concrete_function(x)  # its memory is not that of a call
        return Prepared(lambda: training(x), gradients)
    return Prepared(lambda: inference(x), lambda output: pieces(floats(output), problem))


def _layer(layer_class: Any, row: Row, problem: Problem, k: int, dtype: str) -> Any:
    none = dict.fromkeys(("kernel_initializer", "recurrent_initializer"), "zeros")
    layer = layer_class(row.units, return_sequences=True, dtype=dtype, **none)
    directions = row.directions
    if directions == 2:
        layer = keras.layers.Bidirectional(layer, dtype=dtype)
    width = row.inputs if k == 0 else directions * row.units
    layer.build((row.batch, row.time, width))
    cells = problem.weights.layers[k * directions : (k + 1) * directions]
    layer.set_weights(type(problem.weights)(cells, directions).to_keras())
    return layer


def _fit(row: Row, problem: Problem, layer_class: Any, jit_compile: bool) -> Prepared:
    """[T, I] -> LSTM -> Dense(1), from the same weights on the same data."""
    keras.utils.set_random_seed(0)
    lstm = layer_class(row.units)
    model = keras.Sequential([keras.Input((row.time, row.inputs)), lstm, keras.layers.Dense(1)])
    lstm.set_weights(problem.weights.to_keras())
    model.compile("adam", "mse", jit_compile=jit_compile)
    x = np.tile(problem.x, (FIT_STEPS, 1, 1))
    y = x[:, :, 0].mean(axis=1)

    def call() -> Any:
        return model.fit(x, y, batch_size=row.batch, shuffle=False, verbose=0).history["loss"]

    return Prepared(call, lambda loss: {"loss": np.array(loss)}, FIT_STEPS)
