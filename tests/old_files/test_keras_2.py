"""load_h5 and load_h5_weights beside tf_keras, which is Keras 2 and writes and runs its files."""

import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from old_files.keras_2_names import NAMES, SAVED_MODELS
from tf_lstm_ops.keras import LSTM, Bidirectional, load_h5, load_h5_weights
from tf_lstm_ops.weights import GRUWeights

# Outputs are of the size 1, and each is a sum of at most 60 products in float32.
TOLERANCE = 2e-6


def load(path: Path) -> Any:
    with warnings.catch_warnings():  # of layers without a fused op, such as ConvLSTM2D
        warnings.filterwarnings("ignore", "convert_model did not replace")
        return load_h5(path)


def assert_as_in_keras_2(model: Any, arrays: Any) -> None:
    inputs, wanted = ([arrays[k] for k in sorted(arrays) if k[0] == kind] for kind in "xy")
    found = keras.tree.flatten(model.predict(inputs[0] if len(inputs) == 1 else inputs, verbose=0))
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_computes_what_keras_2_computed(name: str, keras_2_files: Path) -> None:
    with np.load(keras_2_files / f"{name}.npz") as arrays:
        model = load(keras_2_files / f"{name}.h5")
        assert_as_in_keras_2(model, arrays)
        for weight in model.weights:
            weight.assign(keras.ops.zeros_like(weight))
        load_h5_weights(model, keras_2_files / f"{name}_weights.h5")
        for layer in model.layers if name == "stateful" else ():
            layer.reset_states()
        assert_as_in_keras_2(model, arrays)


@pytest.mark.parametrize("name", [*SAVED_MODELS, *(f"{name}.keras" for name in NAMES)])
def test_other_files_of_keras_2(name: str, keras_2_files: Path) -> None:
    refused = {"cells.keras": "several cells", "attention.keras": "multi_head_attention has 8"}
    if name in refused:  # layers that keep their weights in further parts of the file
        with pytest.raises(ValueError, match=refused[name]):
            load(keras_2_files / name)
        return
    with np.load(keras_2_files / f"{name.removesuffix('.keras')}.npz") as arrays:
        assert_as_in_keras_2(load(keras_2_files / name), arrays)


def test_the_layers_are_in_a_file_of_their_own(keras_2_files: Path) -> None:
    """``to_json`` and ``save_weights``."""
    weights, layers = (keras_2_files / f"nested{end}" for end in ("_weights.h5", ".json"))
    with np.load(keras_2_files / "nested.npz") as arrays:
        for config in layers, layers.read_text():
            assert_as_in_keras_2(load_h5(weights, config=config), arrays)
    with pytest.raises(ValueError, match=r"nested\.h5 has the layers of a model"):
        load_h5(keras_2_files / "nested.h5", config=layers)
    with pytest.raises(ValueError, match="config is no JSON"):
        load_h5(weights, config="{")
    with pytest.raises(ValueError, match=r"pass config=, what model\.to_json"):
        load_h5(weights)


@pytest.mark.parametrize("wrapped", [False, True])
def test_weights_of_a_cell_of_keras_2(wrapped: bool, rng: np.random.Generator) -> None:
    """hard_sigmoid is asked of the cell: an RNN has no recurrent_activation."""
    tf_keras = pytest.importorskip("tf_keras")
    cell = tf_keras.layers.GRUCell(3, recurrent_activation="hard_sigmoid", reset_after=True)
    old = tf_keras.layers.RNN(cell, return_sequences=True)
    old = tf_keras.layers.Bidirectional(old) if wrapped else old
    x = rng.normal(size=(2, 5, 4)).astype("float32")
    wanted = old(x)
    new = keras.layers.GRU(3, recurrent_activation="hard_sigmoid", return_sequences=True)
    new = keras.layers.Bidirectional(new) if wrapped else new
    new.build(x.shape)
    arrays = GRUWeights.from_keras(old).to_keras()
    new.set_weights(arrays)
    np.testing.assert_allclose(new(x), wanted, atol=TOLERANCE)


def test_the_model_has_layers_of_the_package(keras_2_files: Path) -> None:
    first = load(keras_2_files / "stacked_hard_lstm.h5").layers[0]
    assert type(first) is LSTM
    assert first.uses_fused_op
    assert isinstance(load(keras_2_files / "text.h5").layers[2], Bidirectional)


def test_the_model_is_saved_and_loaded_with_its_own_hard_sigmoid(
    keras_2_files: Path, tmp_path: Path
) -> None:
    load(keras_2_files / "hard_everywhere.h5").save(tmp_path / "new.keras")
    again = keras.models.load_model(tmp_path / "new.keras")
    with np.load(keras_2_files / "hard_everywhere.npz") as arrays:
        assert_as_in_keras_2(again, arrays)


def test_a_keras_file_with_a_layer_without_name(keras_2_files: Path, tmp_path: Path) -> None:
    """Keras names the layer by its class, so the file does not say whose weights are whose."""
    path = tmp_path / "a.keras"
    with (
        zipfile.ZipFile(keras_2_files / "hard_gru_after.keras") as source,
        zipfile.ZipFile(path, "w") as target,
    ):
        for name in source.namelist():
            data = source.read(name)
            if name == "config.json":
                config = json.loads(data)
                del config["config"]["layers"][1]["config"]["name"]
                data = json.dumps(config).encode()
            target.writestr(name, data)
    with pytest.raises(ValueError, match="weights of layer GRU are not found"):
        load_h5(path)
