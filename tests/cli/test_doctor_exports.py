"""``doctor`` names the cause of exports that do not work, and what to change, once."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import __main__
from tf_lstm_ops.cli import doctor_environment, doctor_exports, doctor_whole, output

layers, ours = keras.layers, tf_lstm_ops.keras


@pytest.fixture(autouse=True)
def no_problems(monkeypatch) -> None:
    """The environment of the tests is not what they test."""
    monkeypatch.setattr(doctor_environment, "problems", lambda: [])
    monkeypatch.setattr(output, "width", lambda: 10**6)  # test_doctor_whole.py has the width
    monkeypatch.setattr(doctor_whole, "_measured", lambda *_: [])  # test_doctor_whole.py


def model_of(steps: int | None) -> keras.Model:
    keras.utils.set_random_seed(1)
    stack = [ours.LSTM(4, return_sequences=True), layers.TimeDistributed(layers.Dense(2), name="d")]
    return keras.Sequential([keras.Input((steps, 3)), *stack])


def model_export_is_wrong(model: keras.Model, folder: Path) -> bool:
    """Whether Keras' own export has the same error."""
    model.export(folder, verbose=False)
    x = np.ones([2, 7, 3], "float32")
    loaded = tf.saved_model.load(folder)
    got, want = loaded.serve(x), model(x)
    return got.shape != want.shape or not np.allclose(got, want)


@pytest.mark.full
def test_an_unknown_number_of_steps(tmp_path: Path, capsys, monkeypatch) -> None:
    some = dict(list(doctor_exports.EXPORTS.items())[:2])  # the others take seconds
    monkeypatch.setattr(doctor_exports, "EXPORTS", some)
    model = model_of(None)
    if not model_export_is_wrong(model, tmp_path / "exported"):
        pytest.skip("this version of Keras exports the layer right")
    model.save(tmp_path / "model.keras")
    capsys.readouterr()
    assert __main__.main(["doctor", str(tmp_path / "model.keras"), "--no-timing"]) == 1
    printed = capsys.readouterr().out
    assert printed.count("TimeDistributed") == 1
    assert (
        "  saved_model, saved_model(portable=True): not working\n"
        "    reason  the SavedModel in PATH has the outputs float32 [2, 2, 2], but the model has "
        "float32 [2, 16, 2]\n"
        "    change  give keras.Input a fixed number of steps, or the export an input_signature. "
        "The TimeDistributed layer d has an unknown number, which Keras exports wrongly, also with "
        "model.export\n"
    ) in printed
    assert printed.endswith("\n1 thing to change.\n")
    assert not model_export_is_wrong(model_of(7), tmp_path / "fixed")


@pytest.mark.full
@pytest.mark.parametrize("name", doctor_exports.EXPORTS)
def test_every_export_names_the_change(name: str) -> None:
    if name == "onnx":
        pytest.importorskip("tf2onnx", reason="the converter of all other layers")
    if doctor_exports.attempt(name, model_of(None)).works:
        pytest.skip("this version of Keras exports the layer right")
    assert "TimeDistributed layer d" in str(doctor_exports.attempt(name, model_of(None)).change)
    assert doctor_exports.attempt(name, model_of(7)) == (name, True, None, None)


def test_an_export_that_does_not_work_is_never_nothing(tmp_path: Path, capsys, monkeypatch) -> None:
    """The status is that of things to change, which the message of an error can name."""

    def fails(model: Any, path: Path) -> None:
        raise ImportError("needs a package")

    monkeypatch.setattr(doctor_exports, "EXPORTS", {"onnx": fails, "tflite": fails})
    file = tmp_path / "model.keras"
    keras.Sequential([keras.Input((4, 3)), ours.LSTM(4)]).save(file)
    assert __main__.main(["doctor", str(file)]) == 0
    printed = capsys.readouterr().out
    assert printed.endswith("\nNothing to change in the layers. 2 exports do not work.\n")


def test_a_session_that_cannot_stream() -> None:
    """It works, for whole sequences."""
    both = layers.Bidirectional(layers.LSTM(4), name="both")
    found = doctor_exports.attempt("session", keras.Sequential([keras.Input((None, 3)), both]))
    assert found.works
    why = "a layer reads the sequence backwards: layer 0, both"
    assert found.reason == f"the session cannot stream: {why}"
    model = keras.Sequential([keras.Input((None, 3)), layers.LSTM(4)])
    assert doctor_exports.attempt("session", model).reason is None
