"""convert_model of keras.layers.RNN of one cell, stock or ours."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from tf_lstm_ops.cli import doctor_layers
from tf_lstm_ops.keras import (
    GRU,
    LSTM,
    GRUCell,
    LSTMCell,
    class_names,
    convert_model,
    fallback_reasons,
)

from .convert_models import (
    BATCH,
    INPUTS,
    PREDICTION_BOUND,
    TIME,
    UNITS,
    Model,
    assert_near,
    outputs,
    randomised,
)

CELLS = {
    "stock LSTM": (layers.LSTMCell, LSTM, {"unit_forget_bias": False, "use_bias": False}),
    "stock GRU": (layers.GRUCell, GRU, {"reset_after": False}),
    "LSTM": (LSTMCell, LSTM, {"dropout": 0.2, "recurrent_dropout": 0.1, "implementation": 1}),
    "LSTM with options": (LSTMCell, LSTM, {"use_peephole": True, "cell_clip": 1.0}),
    "projection": (LSTMCell, LSTM, {"projection_size": 3}),
    "normalised LSTM": (LSTMCell, LSTM, {"layer_normalization": "addons"}),
    "GRU": (GRUCell, GRU, {"kernel_regularizer": "l2"}),
    "normalised GRU": (GRUCell, GRU, {"layer_normalization": True}),
}


@pytest.fixture
def x(rng) -> np.ndarray:
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    x[1, TIME // 2 :] = 0
    return x


def model_of(cell: Any, x: np.ndarray, rng: np.random.Generator, **options: Any) -> Model:
    stack = [keras.Input(x.shape[1:]), layers.Masking(), layers.RNN(cell, name="memory", **options)]
    return randomised(keras.Sequential(stack), x, rng)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_one_cell(name, in_place, x, rng, tmp_path):
    cls, wanted, options = CELLS[name]
    model = model_of(cls(UNITS, **options), x, rng, return_sequences=True, go_backwards=True)
    reason = "it is keras.layers.RNN; convert_model replaces it"
    assert fallback_reasons(model) == {"memory": reason}
    [found] = doctor_layers.findings(model)
    assert found.change.sentence == doctor_layers.CONVERT
    arrays, expected = model.get_weights(), outputs(model, x)
    converted = convert_model(model, in_place=in_place)
    assert isinstance(converted.layers[1], wanted)
    assert fallback_reasons(converted) == {"memory": None}
    name = class_names.public(type(converted.layers[1]))
    assert name == f"tf_lstm_ops.keras.{wanted.__name__}"
    assert converted.layers[1].cell.implementation == options.get("implementation", 2)
    for ours, before in zip(converted.get_weights(), arrays, strict=True):
        np.testing.assert_array_equal(ours, before)
    # Normalisation divides by a standard deviation of about one.
    assert_near(outputs(converted, x), expected, 4 * PREDICTION_BOUND)
    converted.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert_near(outputs(loaded, x), outputs(converted, x), 0)


@pytest.mark.parametrize("name", ["stock LSTM", "stock GRU"])
def test_there_and_back(name, x, rng):
    cls, _, options = CELLS[name]
    cell = cls(UNITS, name="own_name", **options)
    model = model_of(cell, x, rng, return_sequences=True, zero_output_for_mask=True)
    stock = convert_model(convert_model(model), to="stock")
    assert type(stock.layers[1]) is layers.RNN and type(stock.layers[1].cell) is cls
    assert stock.layers[1].get_config() == model.layers[1].get_config()
    assert [w.path for w in stock.weights] == [w.path for w in model.weights]
    assert_near(outputs(stock, x), outputs(model, x), 0)


def test_what_stock_cells_lack_is_an_error(x, rng):
    converted = convert_model(model_of(LSTMCell(UNITS, use_peephole=True), x, rng))
    with pytest.raises(ValueError, match=r"memory: keras\.layers\.LSTMCell has no use_peephole"):
        convert_model(converted, to="stock")


def mixed(x: np.ndarray, rng: np.random.Generator) -> Model:
    """Of Keras' layers; in a file, each has the name of its class and a number."""
    options = {"return_sequences": True}
    stack = [
        keras.Input(x.shape[1:]),
        layers.RNN(layers.LSTMCell(UNITS), **options),
        layers.LSTM(UNITS, **options),
        layers.RNN(layers.GRUCell(UNITS), **options),
        layers.Bidirectional(layers.RNN(layers.LSTMCell(UNITS), **options)),
        keras.Sequential([layers.GRU(UNITS, **options), layers.RNN(layers.GRUCell(UNITS))]),
    ]
    return randomised(keras.Sequential(stack), x, rng)


@pytest.mark.full
def test_weights_files_fit_both_ways(x, rng, tmp_path):
    model = mixed(x, rng)
    stock, ours = tmp_path / "stock.weights.h5", tmp_path / "ours.weights.h5"
    model.save_weights(stock)
    converted = convert_model(mixed(x, rng))
    converted.save(tmp_path / "model.keras")
    for target in converted, keras.models.load_model(tmp_path / "model.keras"):
        target.load_weights(stock)
        for a, b in zip(target.get_weights(), model.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)
        randomised(target, x, rng).save_weights(ours)
        other = mixed(x, rng)
        other.load_weights(ours)
        for a, b in zip(other.get_weights(), target.get_weights(), strict=True):
            np.testing.assert_array_equal(a, b)


def test_training_goes_on(x, rng):
    keras.utils.set_random_seed(1)
    model = model_of(LSTMCell(UNITS, dropout=0.3, dtype="float64"), x, rng, dtype="float64")
    model.compile(keras.optimizers.Adam(0.05), "mse", run_eagerly=True)
    y = rng.normal(size=(BATCH, UNITS))
    model.train_on_batch(x, y)
    converted = convert_model(model)
    for m in model, converted:
        m.reset_metrics()
        m.train_on_batch(x, y)
    assert fallback_reasons(converted) == {"memory": None}
    # A step is up to 0.05; another mask of dropout or other slots change it by more than 1e-3.
    for ours, stock in zip(converted.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_allclose(ours, stock, rtol=0, atol=1e-9)
