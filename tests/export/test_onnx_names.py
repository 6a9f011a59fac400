"""The names of inputs and outputs of ONNX files, and those of LiteRT files, which are the same."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tf_lstm_ops import export
from tf_lstm_ops.export.names import unique
from tf_lstm_ops.keras import LSTM

pytest.importorskip("tf2onnx", reason="the converter of all other layers")
runtime = pytest.importorskip("onnxruntime", reason="runs the files")

T, INPUTS, UNITS = 4, 3, 5


def layers(x: Any, name: str = "encoder") -> list[Any]:
    """Three outputs of two layers."""
    y, h, c = LSTM(UNITS, return_sequences=True, return_state=True, name=name)(x)
    return [y, h, keras.layers.Dense(2, name="head")(c)]


def nested(x: Any, *outputs: Any) -> dict[str, Any]:
    return {"b": outputs[0], "a": {"x": x, "y": list(outputs[1:])}}


def in_a_list(*outputs: Any) -> list[Any]:
    return [outputs[0], {"k": outputs[1]}]


MODELS: dict[str, tuple[Callable[[Any], keras.Model], list[str]]] = {
    "one": (lambda x: keras.Model(x, layers(x)[2]), ["head"]),
    "several": (lambda x: keras.Model(x, layers(x)), ["encoder", "encoder_1", "head"]),
    "dict": (
        lambda x: keras.Model(x, dict(zip("cab", layers(x), strict=True))),
        ["a", "b", "c"],
    ),
    "nested": (
        lambda x: keras.Model(x, nested(x + 1, *layers(x))),
        ["a_x", "a_y", "a_y_1", "b"],
    ),
    "in a list": (
        lambda x: keras.Model(x, in_a_list(*layers(x))),
        ["encoder", "k"],
    ),
    "slash": (lambda x: keras.Model(x, LSTM(UNITS, name="a-b.c")(x)), ["a_b_c"]),
    "passed on": (lambda x: keras.Model(x, [x, layers(x)[2]]), ["x_1", "head"]),
    "a name that is taken": (
        lambda x: keras.Model(x, [*layers(x)[:2], LSTM(UNITS, name="encoder_1")(x)]),
        ["encoder", "encoder_2", "encoder_1"],
    ),
}


def onnx_names(model: keras.Model, path: Path) -> list[str]:
    export.onnx(model, path)
    session = runtime.InferenceSession(path)
    assert [given.name for given in session.get_inputs()] == ["x"]
    x = np.random.default_rng(0).normal(size=(2, T, INPUTS)).astype("float32")
    found = session.run(None, {"x": x})
    wanted = keras.tree.flatten(model(x))
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)  # float32, another order
    return [given.name for given in session.get_outputs()]


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("name", MODELS)
def test_outputs_of_onnx(name: str, tmp_path: Path) -> None:
    make, names = MODELS[name]
    model = make(keras.Input((T, INPUTS), name="x"))
    assert onnx_names(model, tmp_path / "model.onnx") == names


@pytest.mark.full
@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("name", ["several", "dict", "nested", "in a list", "a name that is taken"])
@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
def test_outputs_of_lite(name: str, tmp_path: Path) -> None:
    make, names = MODELS[name]
    export.tflite(make(keras.Input((T, INPUTS), name="x")), tmp_path / "model.tflite")
    import tensorflow as tf

    run = tf.lite.Interpreter(str(tmp_path / "model.tflite")).get_signature_runner()
    assert sorted(run.get_output_details()) == sorted(names)


class Own(keras.Model):
    """A subclassed model: its layers are not known to Keras."""

    def __init__(self, kind: str) -> None:
        super().__init__(name="own")
        self.kind, self.layer = kind, LSTM(UNITS, return_state=True)

    def call(self, x: Any) -> Any:
        y, h, c = self.layer(x)
        return {"one": y, "several": (y, h, c), "dict": {"z": y, "a": h}}[self.kind]


@pytest.mark.parametrize(
    ("kind", "names"),
    [("one", ["own"]), ("several", ["own", "own_1", "own_2"]), ("dict", ["a", "z"])],
)
def test_outputs_of_a_subclassed_model(kind: str, names: list[str], tmp_path: Path) -> None:
    model = Own(kind)
    model(np.ones([2, T, INPUTS], "float32"))
    path = tmp_path / "model.onnx"
    export.onnx(model, path)
    found = [given.name for given in runtime.InferenceSession(path).get_outputs()]
    assert found == names


def test_unique() -> None:
    """A name that occurs once stays as it is."""
    assert unique(["a", "a", "a_1", "b", "a"]) == ["a", "a_2", "a_1", "b", "a_3"]
    assert unique(["x", "y"], taken=["x", "x_1"]) == ["x_2", "y"]
    assert unique([]) == []
