"""The warning of convert_model that hard_sigmoid was another function in Keras 2."""

import warnings
from pathlib import Path
from typing import Any

import keras
import pytest

from old_files import writer
from tf_lstm_ops.keras import LSTM, convert_model, load_h5, load_h5_weights

layers = keras.layers
HARD = {"recurrent_activation": "hard_sigmoid"}


def warned(model: keras.Model, **options: Any) -> list[str]:
    """The layers that the warning names."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        convert_model(model, **options)
    said = [str(each.message) for each in found if "hard_sigmoid is clip" in str(each.message)]
    return said[0].partition("Layers with hard_sigmoid: ")[2].split(", ") if said else []


def test_layers_have_the_names_of_the_model() -> None:
    """The cell that a layer makes for itself is no layer of the user's."""
    halves = layers.LSTM(4, name="first", **HARD)
    both = layers.Bidirectional(halves, name="both")
    own = layers.RNN(layers.LSTMCell(4, name="cell", **HARD), name="rnn", return_sequences=True)
    model = keras.Sequential([keras.Input((None, 3)), own, both, layers.Dense(2, name="last")])
    assert sorted(warned(model)) == ["both/backward_first", "both/forward_first", "rnn"]


def file_of_keras_2(folder: Path) -> Path:
    arrays = writer.arrays("l", writer.UNITS, 3, 4, [4 * writer.UNITS])
    writer.write(
        folder / "old.h5",
        "2.2.4",
        [writer.layer("LSTM", "l", (None, None, 3), **HARD)],
        {"l": arrays},
    )
    return folder / "old.h5"


def test_a_loaded_file_of_keras_2_is_as_it_should_be(tmp_path: Path) -> None:
    model = load_h5(file_of_keras_2(tmp_path))
    assert warned(model) == []
    assert warned(convert_model(model, to="stock")) == []
    other = layers.LSTM(2, name="other", **HARD)(model.outputs[0][:, None])
    assert warned(keras.Model(model.inputs, other)) == ["other"]


@pytest.mark.parametrize("kind", [layers.LSTM, LSTM])
def test_loaded_weights_of_keras_2_are_as_they_should_be(kind: Any, tmp_path: Path) -> None:
    model = keras.Sequential([keras.Input((None, 3)), kind(writer.UNITS, name="l", **HARD)])
    assert warned(model) == ["l"]
    load_h5_weights(model, file_of_keras_2(tmp_path))
    assert warned(model) == []
    assert warned(model, in_place=True) == []
    assert warned(model) == []
