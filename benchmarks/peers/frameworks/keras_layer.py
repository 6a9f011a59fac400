"""Keras' layers in a tf.function and in model.fit: those of this package and the stock ones."""

from __future__ import annotations

import importlib
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from peers.cases import (
    GATES,
    WEIGHTS,
    Problem,
    Row,
    compared_grads,
    compared_output,
)
from peers.frameworks import Prepared, keras_model
from peers.frameworks.tensorflow import floats, set_threads
from peers.models import ModelProblem
from tf_lstm_ops._arrays import Array

FIT_STEPS = 40  # per epoch, to make the cost of an epoch itself small
FIT_PRODUCTS = 2**35  # a bound on the multiply-adds of an epoch's forward passes, beyond two steps


def build(
    row: Row,
    problem: Problem | ModelProblem,
    threads: int,
    *,
    ours: bool = False,
    jit_compile: bool = False,
    dtype: str | None = None,
    training: bool | None = True,
) -> Prepared:
    """Makes a call of a tf.function, or of model.fit.

    Args:
      row: the row.
      problem: its data.
      threads: the number of threads.
      ours: whether to use this package's layers.
      jit_compile: whether XLA compiles the call.
      dtype: the layers' dtype instead of the row's.
      training: the argument of the layers in a training step; None: it is not given.

    Returns:
      The call to time.
    """
    if isinstance(problem, ModelProblem):
        return keras_model.build(row, problem, threads, ours=ours)
    set_threads(threads)
    module = importlib.import_module("tf_lstm_ops").keras if ours else keras.layers
    layer_class = {"lstm": module.LSTM, "gru": module.GRU}[row.cell]
    if row.task == "fit":
        return _fit(row, problem, layer_class, jit_compile)
    dtype = dtype or row.dtype
    layers = [_layer(layer_class, row, problem, k, dtype) for k in range(row.layers)]
    x, output_grad = tf.constant(problem.x, dtype), tf.constant(problem.output_grad, dtype)
    mask = None if problem.valid is None else tf.constant(problem.valid)

    def forward(x: Any, **arguments: bool) -> Any:
        for layer in layers:
            x = layer(x, mask=mask, **arguments)
        return x

    arguments = {} if training is None else {"training": training}

    @tf.function(jit_compile=jit_compile)
    def inference(x: Any) -> Any:
        return forward(x, training=False)

    @tf.function(jit_compile=jit_compile)
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            output = forward(x, **arguments)
        sources = [x, [layer.trainable_variables for layer in layers]]
        return output, tape.gradient(output, sources, output_gradients=output_grad)

    if row.task == "training":
        step.get_concrete_function(x)  # a call's memory does not include tracing
        return Prepared(lambda: step(x), lambda found: _training_results(row, problem, *found))
    return Prepared(lambda: inference(x), lambda output: compared_output(floats(output), problem))


def _training_results(row: Row, problem: Problem, output: Any, grads: Any) -> dict[str, Array]:
    x_grad, layer_grads = grads
    weight_grads = [[floats(g) for g in grads_of_layer] for grads_of_layer in layer_grads]
    return {
        **compared_output(floats(output), problem),
        **compared_grads(floats(x_grad), WEIGHTS[row.cell].from_keras(weight_grads)),
    }


def _layer(
    layer_class: Any, row: Row, problem: Problem, k: int, dtype: str, return_sequences: bool = True
) -> Any:
    options: dict[str, Any] = dict.fromkeys(
        ("kernel_initializer", "recurrent_initializer"), "zeros"
    )
    if row.projection:
        options["projection_size"] = row.projection
    layer = layer_class(row.units, return_sequences=return_sequences, dtype=dtype, **options)
    directions = row.directions
    if directions == 2:
        package = layer_class.__module__.partition(".")[0]
        module = "keras.layers" if package == "keras" else f"{package}.keras"
        layer = importlib.import_module(module).Bidirectional(layer, dtype=dtype)
    width = row.inputs if k == 0 else row.width
    layer.build((row.batch, row.time, width))
    cells = problem.weights.cells[k * directions : (k + 1) * directions]
    layer.set_weights(type(problem.weights)(cells, directions).to_keras())
    return layer


def fit_steps(row: Row) -> int:
    """The number of steps in an epoch of a row of `fit`.

    Args:
      row: the row.

    Returns:
      FIT_STEPS, or fewer where a step takes long.
    """
    columns = row.directions * GATES[row.cell] * row.units
    products = row.batch * row.time * (row.inputs + row.units) * columns
    return max(2, min(FIT_STEPS, FIT_PRODUCTS // products))


def _fit(row: Row, problem: Problem, layer_class: Any, jit_compile: bool) -> Prepared:
    """A model [T, I] -> LSTM -> Dense(1), with the same weights and data for ours and stock."""
    keras.utils.set_random_seed(0)
    inputs = [keras.Input((row.time, row.inputs))]
    mask = None
    if problem.valid is not None:
        mask = keras.Input((row.time,), dtype="bool")
        inputs.append(mask)
    layer = _layer(layer_class, row, problem, 0, row.dtype, return_sequences=False)
    model = keras.Model(inputs, keras.layers.Dense(1)(layer(inputs[0], mask=mask)))
    model.compile("adam", "mse", jit_compile=jit_compile)
    steps = fit_steps(row)
    x = np.tile(problem.x, (steps, 1, 1))
    y = x[:, :, 0].mean(axis=1)
    data = [x] if problem.valid is None else [x, np.tile(problem.valid, (steps, 1))]

    def call() -> Any:
        return model.fit(data, y, batch_size=row.batch, shuffle=False, verbose=0).history["loss"]

    return Prepared(call, lambda loss: {"loss": np.array(loss)}, steps)
