"""Models and .tflite files for the tests of export.tflite."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops.export.lite import flatbuffer

BATCH, TIME, INPUTS, UNITS = 2, 6, 3, 5
FUSED, LOOP = "UNIDIRECTIONAL_SEQUENCE_LSTM", "WHILE"
# Of the largest element. The interpreter rounds in another order, at every step and layer.
TOLERANCE = 2e-6


def make_model(
    *layers: Any, time: int | None = None, rng: np.random.Generator, scale: float = 0.6
) -> keras.Model:
    model = keras.Sequential([keras.Input((time, INPUTS), name="x"), *layers])
    model.set_weights([rng.normal(size=w.shape) * scale for w in model.get_weights()])
    return model


def random(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def make_input(rng: np.random.Generator, time: int = TIME) -> np.ndarray:
    """Sequences, the first of which is padded at its end."""
    x = random(rng, BATCH, time, INPUTS)
    x[0, time // 2 :] = 0
    return x


class File:
    """A .tflite file in TensorFlow's interpreter, without the package's own code to run it."""

    def __init__(self, path: Path) -> None:
        self.content = path.read_bytes()
        self.interpreter = tf.lite.Interpreter(model_content=self.content)
        self.run = self.interpreter.get_signature_runner("serving_default")

    @property
    def ops(self) -> set[str]:
        return set(flatbuffer.operations(self.content))

    def __call__(self, x: np.ndarray) -> np.ndarray:
        [output] = self.run(x=x).values()
        return output


def relative_difference(got: Any, want: Any) -> float:
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    return float(np.abs(got - want).max() / np.abs(want).max())
