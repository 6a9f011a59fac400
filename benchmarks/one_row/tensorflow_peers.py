"""The Keras model in TensorFlow. Calls take a NumPy array and return one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from one_row.cases import Case, Layer
from one_row.peers import Prepared
from tf_lstm_ops import op_definitions


def _input(case: Case) -> np.ndarray:
    return np.zeros((1, case.time, case.inputs), np.float32)


def predict(case: Case, model: keras.Model, _folder: Path) -> list[Prepared]:
    """model.predict."""
    x = _input(case)
    return [Prepared("", x, lambda: model.predict(x, verbose=0))]


def function(case: Case, model: keras.Model, _folder: Path) -> list[Prepared]:
    """The model in a tf.function."""
    x = _input(case)

    @tf.function(input_signature=[tf.TensorSpec(x.shape)])
    def step(x: Any) -> Any:
        return model(x, training=False)

    return [Prepared("", x, lambda: step(x).numpy())]


def eager(case: Case, model: keras.Model, _folder: Path) -> list[Prepared]:
    """The layers of the model, called one after another."""
    x = _input(case)

    def call() -> np.ndarray:
        y = tf.constant(x)
        for layer in model.layers:
            y = layer(y)
        return y.numpy()

    return [Prepared("", x, call)]


def eager_op(case: Case, model: keras.Model, _folder: Path) -> list[Prepared]:
    """The ops behind the layers, called eagerly. Arguments but x and the states are made before."""
    x = _input(case)
    steps = [_op(layer, ours) for layer, ours in zip(case.layers, model.layers, strict=True)]

    def call() -> np.ndarray:
        y = tf.constant(x)
        for step in steps:
            y = step(y)
        return y.numpy()

    return [Prepared("", x, call)]


def _op(layer: Layer, ours: keras.Layer) -> Callable[[Any], Any]:
    """A function that computes a step of a layer and keeps its states."""
    arrays = dict(zip((w.name for w in ours.weights), ours.get_weights(), strict=True))
    weights = {name: tf.constant(array) for name, array in arrays.items()}
    if layer.kind == "dense":
        kernel, bias = weights["kernel"], weights["bias"]
        return lambda x: tf.sigmoid(tf.matmul(x, kernel) + bias)
    absent = tf.zeros([0])
    options = {
        "mask": tf.constant([], tf.bool),
        "kernel": weights["kernel"],
        "recurrent_kernel": weights["recurrent_kernel"],
        "bias": weights["bias"],
        "input_dropout": absent,
        "recurrent_dropout": absent,
        "go_backwards": False,
        "return_sequences": True,
        "training": False,
    }
    states = {"initial_h": tf.zeros([1, layer.size])}
    if layer.kind == "lstm":
        options["peephole"] = weights.get("peephole_kernel", absent)
        options["projection"] = weights.get("projection_kernel", absent)
        states["initial_c"] = tf.zeros([1, layer.units])
    op = op_definitions.function({"lstm": "KerasLSTM", "gru": "KerasGRU"}[layer.kind])

    def step(x: Any) -> Any:
        y, *final = op(x=x, **states, **options)
        states.update(zip(states, final, strict=False))  # `final` ends with what training saves
        return y

    return step
