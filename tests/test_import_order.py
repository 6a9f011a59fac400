"""`import tf_lstm_ops` before, between and after TensorFlow and Keras, each in a new process."""

import subprocess
import sys
from pathlib import Path

import keras
import pytest
import tensorflow as tf

import tf_lstm_ops

HEAVY = """
import sys
found = {name.partition(".")[0] for name in sys.modules}
assert not found & {"tensorflow", "keras", "torch", "jax", "h5py"}, found
"""
# What a program can do after the imports, with files of the fixture.
LOADED = """
import keras
import numpy as np
import tensorflow as tf

x = np.load("x.npy")
np.testing.assert_array_equal(tf.saved_model.load("saved").serve(x), np.load("y.npy"))
np.testing.assert_array_equal(keras.models.load_model("model.keras")(x), np.load("y.npy"))
with tf.GradientTape() as tape:  # of an op, by its gradient in Python
    weight = tf.Variable(tf.ones([3, 4]))
    cell = tf.raw_ops.LSTMBlockCell(
        x=tf.ones([1, 2]), cs_prev=tf.ones([1, 1]), h_prev=tf.ones([1, 1]), w=weight,
        wci=[1.0], wcf=[1.0], wco=[1.0], b=tf.ones([4]),
    )
assert tape.gradient(cell.h, weight) is not None
assert hasattr(keras.src.export.export_onnx, "__wrapped__")
assert {"keras", "raw_ops", "weights"} <= set(dir(sys.modules["tf_lstm_ops"]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model as a SavedModel and as a .keras file, its input and its output."""
    folder = tmp_path_factory.mktemp("files")
    model = keras.Sequential([keras.Input((3, 2)), tf_lstm_ops.keras.LSTM(4)])
    x = tf.random.stateless_normal([5, 3, 2], [1, 2])
    tf_lstm_ops.export.saved_model(model, folder / "saved", verbose=False)
    model.save(folder / "model.keras")
    for name, value in {"x": x, "y": model(x)}.items():
        (folder / f"{name}.npy").write_bytes(b"")
        import numpy as np

        np.save(folder / f"{name}.npy", value)
    return folder


def run(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return None
