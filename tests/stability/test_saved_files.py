"""Files of earlier versions load, and hold and compute what they did then."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import keras
import numpy as np
import pytest
import safetensors.numpy
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.client import pywrap_tf_session

import tf_lstm_ops  # noqa: F401  registers the ops and layers of the files

from .golden_layers import layers_model
from .golden_ops import Ops
from .write_golden import SAFETENSORS, chunks

VERSIONS = sorted(Path(__file__).parent.glob("v*"))
# float32 through small layers; instruction sets and compilers round differently.
CLOSE = {"rtol": 1e-5, "atol": 2e-6}

Arrays = dict[str, np.ndarray]


@pytest.fixture(params=VERSIONS, ids=lambda folder: folder.name)
def folder(request) -> Path:
    return request.param


@pytest.fixture
def results(folder) -> Arrays:
    with np.load(folder / "results.npz") as file:
        return dict(file)


def assert_results(results: Arrays, kind: str, found: Mapping[str, tf.Tensor]) -> None:
    wanted = {name.split("/")[1]: v for name, v in results.items() if name.startswith(f"{kind}/")}
    assert found.keys() == wanted.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, wanted[name], **CLOSE, err_msg=name)


def test_there_are_files():
    assert "v0_1_0" in [folder.name for folder in VERSIONS]


@pytest.mark.full
def test_saved_model_of_ops(folder, results):
    loaded = tf.saved_model.load(folder / "ops")
    x = tf.constant(results["x"])
    assert_results(results, "ops", loaded.results(x))
    assert_results(results, "sizes", loaded.sizes(x))


def test_this_version_computes_the_same(folder, results):
    """So the files were written by the program beside them."""
    assert_results(results, "ops", Ops().results(tf.constant(results["x"])))
    assert_results(results, "layers", layers_model()(results["rows"]))


@pytest.mark.full
def test_saved_model_of_layers(folder, results):
    loaded = tf.saved_model.load(folder / "layers")
    rows = tf.constant(results["rows"])
    assert_results(results, "layers", loaded.serve(rows))
    assert_results(results, "gradients", loaded.gradients(rows))


def test_keras_file(folder, results):
    model = keras.models.load_model(folder / "layers.keras")
    assert_results(results, "layers", model(results["rows"]))


def test_weights_file(folder, results):
    model = layers_model()
    for weight in model.trainable_variables:
        weight.assign(tf.zeros_like(weight))
    model.load_weights(folder / "layers.weights.h5")
    assert_results(results, "layers", model(results["rows"]))


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("name", SAFETENSORS)
def test_safetensors_file(folder, name, tmp_path):
    form, layer = SAFETENSORS[name], layers_model().get_layer(name)
    form.from_keras(layer).to_safetensors(tmp_path / "wanted")
    form.from_safetensors(folder / f"{name}.safetensors").to_safetensors(tmp_path / "found")
    found, wanted = (safetensors.numpy.load_file(tmp_path / file) for file in ("found", "wanted"))
    assert found.keys() == wanted.keys()
    for key, array in found.items():
        np.testing.assert_array_equal(array, wanted[key], err_msg=key)


def test_stateful_keras_file(folder, results):
    model = keras.models.load_model(folder / "stateful.keras")
    assert_results(results, "stateful", dict(zip("01", chunks(results, model), strict=True)))


def test_stateful_saved_model(folder, results):
    loaded = tf.saved_model.load(folder / "stateful")
    found = chunks(results, lambda x: loaded.serve(tf.constant(x)))
    assert_results(results, "stateful", dict(zip("01", found, strict=True)))


def ops_of(file: Path) -> Iterator[str]:
    graph = saved_model_pb2.SavedModel.FromString(file.read_bytes()).meta_graphs[0].graph_def
    for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
        yield from (node.op for node in nodes)


def test_the_files_of_this_version_have_every_op():
    registered = pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList())
    ours = {op.name for op in op_def_pb2.OpList.FromString(registered).op}
    files = (VERSIONS[-1] / name / "saved_model.pb" for name in ("ops", "layers"))
    found = {op for file in files for op in ops_of(file)}
    assert {op for op in ours if op.startswith("TfLstmOps>")} <= found
