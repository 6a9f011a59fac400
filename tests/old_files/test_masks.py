"""Masks of Keras 2 where Keras 3 passes on others, beside tf_keras."""

import warnings
from pathlib import Path

import keras
import numpy as np
import pytest

from old_files.keras_2_names import MASKS, REFUSED_MASKS
from old_files.test_keras_2 import assert_as_in_keras_2, load
from tf_lstm_ops.keras import load_h5, load_h5_weights

# The default run has one model for each question.
FIRST = ("lstm", "encoder_and_decoder", "attention", "add", "of_characters", "nested")


@pytest.mark.parametrize(
    "name", [m if m in FIRST else pytest.param(m, marks=pytest.mark.full) for m in MASKS]
)
def test_a_layer_gets_the_mask_of_keras_2(name: str, keras_2_files: Path, tmp_path: Path) -> None:
    with np.load(keras_2_files / f"masks_{name}.npz") as arrays:
        model = load(keras_2_files / f"masks_{name}.h5")
        assert_as_in_keras_2(model, arrays)
        model.save(tmp_path / "new.keras")
        assert_as_in_keras_2(keras.models.load_model(tmp_path / "new.keras"), arrays)


@pytest.mark.full
@pytest.mark.parametrize("name", MASKS)
def test_masks_of_keras_files(name: str, keras_2_files: Path) -> None:
    if name == "cells":
        pytest.skip("a .keras file with several cells is refused")
    with np.load(keras_2_files / f"masks_{name}.npz") as arrays:
        assert_as_in_keras_2(load(keras_2_files / f"masks_{name}.keras"), arrays)


@pytest.mark.parametrize("name", REFUSED_MASKS)
def test_a_mask_that_keras_3_cannot_pass_on(name: str, keras_2_files: Path) -> None:
    with pytest.raises(ValueError, match=REFUSED_MASKS[name]):
        load_h5(keras_2_files / f"masks_{name}.h5")


@pytest.mark.parametrize("is_given", [False, True])
def test_weights_for_a_graph_without_the_mask(is_given: bool, keras_2_files: Path) -> None:
    """The model is written as in Keras 2, and Keras 3 passes no mask to it."""
    layers = keras.layers
    x, h, c = keras.Input((6,)), keras.Input((4,)), keras.Input((4,))
    embedded = layers.Embedding(9, 5, mask_zero=True)(x)
    lstm = layers.LSTM(4, return_sequences=True, name="decoder")
    given = {"mask": layers.Embedding(9, 5, mask_zero=True).compute_mask(x)} if is_given else {}
    y = lstm(embedded, initial_state=[h, c], **given)
    model = keras.Model([x, h, c], layers.GRU(3)(y))
    path = keras_2_files / "masks_lstm_weights.h5"
    if is_given:
        with warnings.catch_warnings():
            load_h5_weights(model, path)
        with np.load(keras_2_files / "masks_lstm.npz") as arrays:
            assert_as_in_keras_2(model, arrays)
    else:
        with pytest.warns(UserWarning, match=r"decoder .*pass mask="):
            load_h5_weights(model, path)
