"""Models whose Input has a fixed batch size: the check uses it, and a file keeps it if need be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import export
from tf_lstm_ops.keras import LSTM

B, T, INPUTS, UNITS = 4, 6, 3, 5


def sized(x: Any) -> Any:
    """The graph has the number of rows of all steps."""
    y = LSTM(UNITS, return_sequences=True)(x)
    return keras.ops.reshape(y, (B * T, UNITS))


def arithmetic(x: Any) -> Any:
    """The function needs the size while it is traced, and then runs with it only."""
    return keras.layers.Lambda(lambda x: x * float(x.shape[0]))(LSTM(UNITS)(x))


def state(x: Any) -> Any:
    return LSTM(UNITS)(x, initial_state=[tf.fill([B, UNITS], 0.5)] * 2)


def any_size(x: Any) -> Any:
    return LSTM(UNITS)(x)


NEEDED = {"sized": sized, "arithmetic": arithmetic, "state": state}


def make_model(layers: Callable[[Any], Any]) -> keras.Model:
    x = keras.Input(batch_shape=(B, T, INPUTS), name="x")
    return keras.Model(x, layers(x))


def two_inputs(first: int | None = B, second: int | None = 2) -> keras.Model:
    """The larger input is read in pieces of the other's size."""
    a = keras.Input(batch_shape=(first, T, INPUTS), name="a")
    b = keras.Input(batch_shape=(second, UNITS), name="b")
    pieces = keras.ops.reshape(LSTM(UNITS)(a), (-1, 2, UNITS))
    return keras.Model([a, b], pieces + b)


def onnx_sizes(model: keras.Model, path: Path, **options: Any) -> dict[str, Any]:
    pytest.importorskip("tf2onnx", reason="the converter of all other layers")
    runtime = pytest.importorskip("onnxruntime", reason="runs the files")
    export.onnx(model, path, **options)
    return {x.name: x.shape[0] for x in runtime.InferenceSession(path).get_inputs()}


def saved_model_sizes(model: keras.Model, path: Path, **options: Any) -> dict[str, Any]:
    export.saved_model(model, path, **options)
    loaded = tf.saved_model.load(path)  # a name: its variables must live while it is read
    signature = loaded.signatures["serving_default"]
    return {n: s.shape[0] for n, s in signature.structured_input_signature[1].items()}


SIZES = {"onnx": onnx_sizes, "saved_model": saved_model_sizes}


@pytest.fixture(autouse=True)
def compared(recwarn: Any) -> Any:
    """Each file is compared with its model."""
    yield
    assert not [w for w in recwarn if "was not compared" in str(w.message)]


@pytest.mark.parametrize("form", SIZES)
@pytest.mark.parametrize("name", NEEDED)
def test_a_size_that_the_graph_needs_is_kept(form: str, name: str, tmp_path: Path) -> None:
    assert SIZES[form](make_model(NEEDED[name]), tmp_path / "model") == {"x": B}


@pytest.mark.parametrize("form", SIZES)
def test_another_size_is_open_in_the_file(form: str, tmp_path: Path, rng: Any) -> None:
    """As ``model.export`` writes it."""
    model, path = make_model(any_size), tmp_path / "model"
    assert not isinstance(SIZES[form](model, path)["x"], int)  # None, or a name in ONNX
    x = rng.normal(size=(B + 3, T, INPUTS)).astype("float32")
    if form == "onnx":
        runtime = pytest.importorskip("onnxruntime", reason="runs the files")
        [got] = runtime.InferenceSession(path).run(None, {"x": x})
    else:
        loaded = tf.saved_model.load(path)
        got = loaded.serve(x)
    # Float32, rounded in another order.
    np.testing.assert_allclose(got, model(x), rtol=0, atol=1e-6)


@pytest.mark.parametrize("form", SIZES)
def test_inputs_of_different_sizes(form: str, tmp_path: Path) -> None:
    """One has a multiple of the rows of the other."""
    assert SIZES[form](two_inputs(), tmp_path / "model") == {"a": B, "b": 2}


@pytest.mark.parametrize("form", SIZES)
def test_an_open_size_beside_a_fixed_one(form: str, tmp_path: Path) -> None:
    """It is that of the other input in the check."""
    x = keras.Input(batch_shape=(B, T, INPUTS), name="x")
    y = keras.Input((UNITS,), name="y")
    model = keras.Model([x, y], keras.layers.Concatenate()([sized(x)[:B, :], y]))
    assert SIZES[form](model, tmp_path / "model")["x"] == B


def test_a_size_of_the_signature_is_used(tmp_path: Path) -> None:
    """Also where the model's own Input has another one."""
    specs = [keras.InputSpec(shape=(7, T, INPUTS))]
    sizes = onnx_sizes(make_model(any_size), tmp_path / "model", input_signature=specs)
    assert sizes == {"x": 7}


def test_the_model_does_not_change(tmp_path: Path) -> None:
    x = keras.Input(batch_shape=(B, T, INPUTS))
    dropout = keras.layers.Dropout(0.5, seed=1)
    model = keras.Model(x, dropout(LSTM(UNITS, stateful=True)(x)))
    model(np.ones([B, T, INPUTS], "float32"))
    variables = [*model.non_trainable_variables, *model.layers[1].states]
    before = [v.numpy() for v in variables]
    export.saved_model(model, tmp_path / "model")
    np.testing.assert_equal([v.numpy() for v in variables], before)
