"""export.tflite: what it rejects, and files that it does not keep."""

import types
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.export import tflite
from tf_lstm_ops.export.check import ABSOLUTE, Difference
from tf_lstm_ops.export.lite import check
from tf_lstm_ops.keras import GRU, LSTM, op_arguments

from .tflite_files import (
    INPUTS,
    TIME,
    UNITS,
    make_model,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated"),
    pytest.mark.skipif(not hasattr(tf, "lite"), reason="this TensorFlow has no TensorFlow Lite"),
]


def bad_calls() -> dict[str, tuple[Any, dict[str, Any], type[Exception], str]]:
    """By name: what makes the model, arguments, and the error."""
    lstm = lambda: [LSTM(UNITS, name="a")]  # noqa: E731
    gru = lambda: [GRU(UNITS, name="a")]  # noqa: E731
    int8 = {"quantize": "int8"}
    data = np.zeros([4, TIME, INPUTS], "float32")
    backwards = lambda: [LSTM(UNITS, go_backwards=True, name="a")]  # noqa: E731
    half = lambda: [LSTM(UNITS, dtype="float16", name="a")]  # noqa: E731
    dense = lambda: [keras.layers.Dense(2)]  # noqa: E731
    return {
        "batch type": (lstm, {"batch_size": 1.5}, TypeError, "batch_size must be an integer"),
        "batch": (lstm, {"batch_size": 0}, ValueError, "batch_size must be positive. Received: 0"),
        "quantize": (lstm, {"quantize": "int4"}, ValueError, "Received: 'int4'"),
        "no data": (lstm, int8, ValueError, "quantize='int8' needs representative_data"),
        "few rows": (
            lstm,
            {"representative_data": data, "batch_size": 5},
            ValueError,
            "at least batch_size=5 rows. Received: 4",
        ),
        "shape of data": (
            lstm,
            {"representative_data": data[..., :2]},
            ValueError,
            r"must have the shape \[N, None, 3\]. Received: \[4, 6, 2\]",
        ),
        "no batch": (
            lstm,
            {"representative_data": lambda: []},
            ValueError,
            "representative_data returned no batch",
        ),
        "number of data": (
            lstm,
            {"representative_data": [data, data]},
            ValueError,
            r"an array for each of the model's inputs \['x'\]",
        ),
        "int8 loop": (
            gru,
            {**int8, "representative_data": data},
            ValueError,
            "layer a: quantize='int8' needs a known number of steps",
        ),
        "type of layer": (half, {}, ValueError, "layer a computes in float16"),
        "backwards": (
            backwards,
            {"stateful": True},
            ValueError,
            "layer a: stateful=True needs layers that read forwards",
        ),
        "no layer": (
            dense,
            {"stateful": True},
            ValueError,
            "stateful=True needs an LSTM, a GRU or another layers.RNN",
        ),
    }


BAD_CALLS = bad_calls()


@pytest.mark.parametrize("case", BAD_CALLS)
def test_errors(case, tmp_path, rng):
    layers, arguments, error, message = BAD_CALLS[case]
    model = make_model(*layers(), rng=rng)
    path = tmp_path / "model.tflite"
    path.write_text("before")
    with pytest.raises(error, match=message) as found:
        tflite(model, path, **arguments)
    assert "Exception encountered when calling" not in str(found.value)  # words of Keras
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_model_that_is_not_functional(tmp_path):
    class Model(keras.Model):
        def call(self, x: Any) -> Any:
            return x

    with pytest.raises(ValueError, match="functional or a built Sequential model"):
        tflite(Model(), tmp_path / "model.tflite")


def test_model_of_another_type(tmp_path):
    with pytest.raises(TypeError, match=r"model must be a keras\.Model"):
        tflite(LSTM(3), tmp_path / "model.tflite")


@pytest.mark.full
def test_model_that_the_converter_does_not_know(tmp_path):
    model = keras.Sequential([keras.Input((3, 3)), keras.layers.Lambda(tf.linalg.expm)])
    with pytest.raises(ValueError, match="TensorFlow's converter cannot convert the model"):
        tflite(model, tmp_path / "model.tflite")


def without(function: str, value: dict[str, Any]) -> Any:
    """The module op_arguments with a function that returns something else."""
    return types.SimpleNamespace(**{**vars(op_arguments), function: lambda *layer: value})


@pytest.mark.full
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        ("flatbuffer", "op_arguments", without("weights", {"peephole": None})),
        pytest.param(
            *("flatbuffer", "op_arguments", without("attributes", {"cell_clip": 0.0})),
            marks=pytest.mark.full,
        ),
        ("layers", "_CLEARED", 0.0),  # the states of the call before remain
    ],
)
def test_wrong_file_is_not_kept(module, name, value, tmp_path, rng, monkeypatch):
    model = make_model(LSTM(UNITS, use_peephole=True, cell_clip=0.1), rng=rng)
    monkeypatch.setattr(f"tf_lstm_ops.export.lite.{module}.{name}", value)
    with pytest.raises(ValueError, match=r"largest difference of .* The file was not kept"):
        tflite(model, tmp_path / "model.tflite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("quantize", check.TOLERANCES)
def test_limits(quantize):
    limit, _ = check.TOLERANCES[quantize]
    # A sigmoid has 256 values in int8, and elsewhere float32 near 1.
    step = 2.0**-8 if quantize == "int8" else ABSOLUTE
    for size in (1.0, 1e-9):
        check.reject({"y": Difference(0.99 * (limit * size + step), size)}, quantize)
        with pytest.raises(ValueError, match=r"output y with a largest difference .* not kept"):
            check.reject({"y": Difference(1.01 * (limit * size + step), size)}, quantize)


def test_tensorflow_without_its_converter(tmp_path, rng, monkeypatch):
    monkeypatch.delattr(tf.lite, "TFLiteConverter")
    model = make_model(LSTM(UNITS), rng=rng)
    with pytest.raises(ImportError, match=r"pip install 'tensorflow<"):
        tflite(model, tmp_path / "model.tflite")
    assert list(tmp_path.iterdir()) == []
