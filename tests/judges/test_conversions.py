"""One Keras model with 35 recurrent layers of every option, through everything that takes a model.

recurrent_model.py says where the idea of the model comes from. The results are those of stock Keras
in float64.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from judges import recurrent_model
from tf_lstm_ops import export
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import convert_model

pytestmark = pytest.mark.full  # the model alone takes seconds
# float32 against float64, through up to three layers of 9 steps.
TOLERANCE = 1e-5
Array = np.ndarray[Any, Any]


@pytest.fixture(scope="module")
def model() -> keras.Model:
    keras.utils.set_random_seed(5)
    return recurrent_model.model()


@pytest.fixture(scope="module")
def fused(model: keras.Model) -> keras.Model:
    return convert_model(model)


@pytest.fixture(scope="module")
def given() -> list[Array]:
    return recurrent_model.inputs(np.random.default_rng(3))


@pytest.fixture(scope="module")
def expected(model: keras.Model, given: list[Array]) -> list[Array]:
    return recurrent_model.expected(model.get_weights(), given)


@pytest.fixture(scope="module")
def onnx_file(fused: keras.Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("tf2onnx", reason="the converter of all other layers")
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    export.onnx(fused, path)
    return path


def assert_close(got: Any, want: list[Array]) -> None:
    results = [*got.values()] if isinstance(got, Mapping) else [*got]
    assert len(results) == len(want)
    wrong = {}
    for k, (a, b) in enumerate(zip(map(np.asarray, results), want, strict=True)):
        if a.shape != b.shape:
            wrong[f"y{k:02}"] = f"{a.shape}, not {b.shape}"
        elif not (difference := np.abs(a - b).max()) <= TOLERANCE * max(1, np.abs(b).max()):
            wrong[f"y{k:02}"] = f"differs by {difference:.2g}"
    assert not wrong


def recurrent(model: keras.Model) -> list[keras.layers.Layer]:
    """The recurrent layers; two directions are one."""
    kinds = (keras.layers.RNN, keras.layers.Bidirectional)
    inner = [getattr(layer, "layer", layer) for layer in model.layers]
    return [
        each
        for layer, own in zip(model.layers, inner, strict=True)
        for each in [layer if isinstance(layer, kinds) else own]
        if isinstance(each, kinds)
    ]


def test_the_model_has_35_layers(model: keras.Model) -> None:
    assert len(recurrent(model)) >= 35


def test_stock_in_float32(model: keras.Model, given: Any, expected: list[Array]) -> None:
    """The tolerance is that of stock Keras, too."""
    assert_close(model(given), expected)


def test_session(model: keras.Model) -> None:
    """All layers but one, which convert_model replaces."""
    with pytest.raises(ValueError, match=r"layer rnn\w*: it is keras\.layers\.RNN") as error:
        Session(model)
    assert str(error.value).count("a session does not compute") == 1


def test_convert_model(fused: keras.Model, given: Any, expected: list[Array]) -> None:
    assert_close(fused(given), expected)


def test_session_of_fused_layers(fused: keras.Model, given: Any, expected: list[Array]) -> None:
    session = Session(fused)
    names = [spec.name for spec in session.inputs]
    assert_close(session(dict(zip(names, given, strict=True))), expected)


def test_back_to_stock(fused: keras.Model, given: Any, expected: list[Array]) -> None:
    stock = convert_model(fused, to="stock")
    assert not [each for each in recurrent(stock) if "tf_lstm_ops" in type(each).__module__]
    assert_close(stock(given), expected)


def test_keras_file(fused: keras.Model, given: Any, expected: list[Array], tmp_path: Path) -> None:
    fused.save(tmp_path / "model.keras")
    assert_close(keras.models.load_model(tmp_path / "model.keras")(given), expected)


def test_onnx(onnx_file: Path, given: list[Array], expected: list[Array]) -> None:
    runtime = pytest.importorskip("onnxruntime", reason="runs the file")
    session = runtime.InferenceSession(onnx_file)
    names = [each.name for each in session.get_inputs()]
    assert_close(session.run(None, dict(zip(names, given, strict=True))), expected)


def test_session_of_onnx(onnx_file: Path, given: list[Array], expected: list[Array]) -> None:
    """Of all outputs but that of a SimpleRNN with sigmoid, which the file has as a loop."""
    computed = []
    for k in range(len(expected)):
        try:
            Session.from_onnx(onnx_file, outputs=[f"y{k:02}"], check=False)
            computed.append(k)
        except ValueError as error:
            assert re.search(r"simple_rnn.*it is a loop over steps", str(error))
    assert len(computed) == len(expected) - 1
    session = Session.from_onnx(onnx_file, outputs=[f"y{k:02}" for k in computed])
    results = [*session(dict(zip("abc", given, strict=True))).values()]
    wanted = [expected[k] for k in computed]
    # A session has no axis of one step that the file has from its inputs.
    assert_close([np.reshape(a, b.shape) for a, b in zip(results, wanted, strict=True)], wanted)


def test_saved_model(fused: keras.Model, given: Any, expected: Any, tmp_path: Path) -> None:
    export.saved_model(fused, tmp_path / "saved")
    loaded = tf.saved_model.load(tmp_path / "saved")  # it owns the variables
    assert_close(loaded.serve(given), expected)
