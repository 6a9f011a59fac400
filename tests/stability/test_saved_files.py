"""SavedModels and `.keras` files of earlier versions load, and compute what they computed then."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops  # noqa: F401  registers the ops and layers of the files

VERSIONS = sorted(Path(__file__).parent.glob("v*"))
# float32 through two small layers; instruction sets and compilers round differently.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def folder(request) -> Path:
    return request.param


@pytest.fixture
def results(folder) -> dict[str, np.ndarray]:
    with np.load(folder / "results.npz") as file:
        return dict(file)


def test_there_are_files():
    assert "v0_1_0" in [folder.name for folder in VERSIONS]


def test_saved_model_of_ops(folder, results):
    loaded = tf.saved_model.load(folder / "ops")
    found = loaded.results(tf.constant(results["x"]))
    assert {*found, "x", "layers"} == results.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, results[name], **CLOSE, err_msg=name)


def test_saved_model_of_layers(folder, results):
    loaded = tf.saved_model.load(folder / "layers")
    served = loaded.serve(tf.constant(results["x"]))
    np.testing.assert_allclose(served, results["layers"], **CLOSE)


def test_keras_file(folder, results):
    model = keras.models.load_model(folder / "layers.keras")
    assert all(layer.uses_fused_op for layer in model.layers[1:])
    np.testing.assert_allclose(model(results["x"]), results["layers"], **CLOSE)
