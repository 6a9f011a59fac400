"""The Keras model in TensorFlow. Calls take a NumPy array and return one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from one_row.cases import Case
from one_row.peers import Prepared


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
