"""convert_model and masks, where stock recurrent layers pass them on and where they do not.

Those of Keras 3.16 do not. The tests make those of older versions the same.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

import tf_lstm_ops
from tf_lstm_ops.keras import StackedGRU, StackedLSTM, convert_model

from .convert_models import BATCH, INPUTS, PREDICTION_BOUND, TIME, UNITS, assert_near, outputs

LOST = "stack: stock layers of this version of Keras do not pass masks on, and it can get one"


@pytest.fixture
def stock_stops_masks(monkeypatch) -> Iterator[None]:
    for cls in layers.RNN, layers.Bidirectional:

        def as_in_keras_3_16(self, *arguments, init=cls.__init__, **options):
            init(self, *arguments, **options)
            self.supports_masking = False

        monkeypatch.setattr(cls, "__init__", as_in_keras_3_16)
    with warnings.catch_warnings():  # of Keras: the mask is destroyed
        warnings.filterwarnings("ignore", "(?s)Layer .* mask", UserWarning)
        yield


@pytest.fixture
def x(rng) -> np.ndarray:
    """With zeros, which Masking masks."""
    x = rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32")
    x[:, 2:] = 0
    return x


def model_of(*parts: Any, inputs: int = INPUTS) -> keras.Sequential:
    return keras.Sequential([keras.Input((TIME, inputs)), *parts])


def same_after_a_file(model: Any, x: np.ndarray, folder: Any) -> bool:
    model.save(folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    return bool(np.array_equal(loaded(x), model(x)))


@pytest.mark.usefixtures("stock_stops_masks")
def test_ours_pass_on_what_the_stock_layer_passed_on(x, tmp_path):
    rnn = layers.LSTM(UNITS, return_sequences=True)
    model = model_of(layers.Masking(), rnn, layers.GRU(UNITS))
    wanted = outputs(model, x)
    converted = convert_model(model)
    assert_near(outputs(converted, x), wanted, PREDICTION_BOUND)
    assert same_after_a_file(converted, x, tmp_path)
    assert tf_lstm_ops.keras.LSTM(3).supports_masking
    assert not any(layer.supports_masking for layer in converted.layers[1:])


@pytest.mark.usefixtures("stock_stops_masks")
def test_a_mask_that_a_file_would_lose_is_a_warning(x, tmp_path):
    ours = tf_lstm_ops.keras.LSTM(UNITS, return_sequences=True, name="ours")
    model = model_of(layers.Masking(), ours, tf_lstm_ops.keras.GRU(UNITS, name="last"))
    with pytest.warns(UserWarning, match=r"not after a model is loaded from a file:\n  ours$"):
        stock = convert_model(model, to="stock")
    assert_near(outputs(stock, x), outputs(model, x), PREDICTION_BOUND)
    assert not same_after_a_file(stock, x, tmp_path)


@pytest.mark.usefixtures("stock_stops_masks")
@pytest.mark.parametrize("sequences", [False, True])
def test_no_warning_without_a_mask_or_a_next_layer(sequences, x, tmp_path):
    parts = [] if sequences else [layers.Masking()]
    model = model_of(*parts, tf_lstm_ops.keras.LSTM(UNITS, return_sequences=sequences))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "these layers pass")
        stock = convert_model(model, to="stock")
    assert_near(outputs(stock, x), outputs(model, x), PREDICTION_BOUND)
    assert same_after_a_file(stock, x, tmp_path)


def embedded(stack: Any) -> Any:
    tokens = keras.Input((TIME,))
    return keras.Model(tokens, stack(layers.Embedding(9, INPUTS, mask_zero=True)(tokens)))


def given(stack: Any) -> Any:
    inputs = [keras.Input((TIME, INPUTS)), keras.Input((TIME,), dtype="bool")]
    return keras.Model(inputs, stack(inputs[0], mask=inputs[1]))


def nested(stack: Any) -> Any:
    return model_of(layers.Masking(), model_of(stack))


def within_another(stack: Any) -> Any:
    model = model_of(stack)
    model_of(layers.Masking(), model)
    return model


def called_by_code(stack: Any) -> Any:
    class Caller(keras.Model):
        def __init__(self, inner=None):
            super().__init__()
            self.inner = inner or model_of(stack)

        def call(self, x):
            return self.inner(x, mask=tf.reduce_any(x != 0, axis=-1))

    return Caller()


def not_built(stack: Any) -> Any:
    return keras.Sequential([layers.Masking(), stack])


MASKED = [embedded, given, nested, within_another, called_by_code, not_built]


@pytest.mark.usefixtures("stock_stops_masks")
@pytest.mark.parametrize("make", MASKED, ids=lambda make: make.__name__)
def test_a_stack_that_can_get_a_mask_is_refused(make):
    with pytest.raises(ValueError, match=LOST):
        convert_model(make(StackedLSTM(UNITS, 2, name="stack")), to="stock")


@pytest.mark.usefixtures("stock_stops_masks")
def test_a_stack_of_one_layer_loses_only_the_mask_of_its_sequences(x, tmp_path):
    many = StackedGRU(UNITS, 1, return_sequences=True, name="stack")
    with pytest.raises(ValueError, match=LOST):
        convert_model(model_of(layers.Masking(), many, layers.GRU(2)), to="stock")
    model = model_of(layers.Masking(), StackedGRU(UNITS, 1))
    stock = convert_model(model, to="stock")
    assert_near(outputs(stock, x), outputs(model, x), PREDICTION_BOUND)
    assert same_after_a_file(stock, x, tmp_path)


@pytest.mark.usefixtures("stock_stops_masks")
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_stack_without_a_mask_becomes_stock_layers(bidirectional, x, tmp_path):
    """The layer before it stops the mask."""
    stack = StackedLSTM(UNITS, 3, bidirectional=bidirectional)
    first = layers.GRU(UNITS, return_sequences=True)
    model = model_of(layers.Masking(), first, model_of(stack, inputs=UNITS))
    stock = convert_model(model, to="stock")
    assert_near(outputs(stock, x), outputs(model, x), PREDICTION_BOUND)
    assert same_after_a_file(stock, x, tmp_path)


@pytest.mark.usefixtures("stock_stops_masks")
def test_a_mask_of_the_caller_reaches_the_first_of_the_stock_layers(x):
    """So the reference says; no graph shows such a mask."""
    stock = convert_model(model_of(StackedGRU(UNITS, 2)), to="stock")
    mask = np.any(x != 0, axis=-1)
    first, second = stock.layers[0].layers
    assert_near([stock(x, mask=mask)], [second(first(x, mask=mask))], PREDICTION_BOUND)
    assert np.abs(second(first(x, mask=mask)) - second(first(x, mask=mask), mask=mask)).max() > 1e-3


@pytest.mark.parametrize("masked", [False, True])
def test_unrolled_layers_of_which_keras_computes_something_else(masked: bool) -> None:
    layer = keras.layers.LSTM(3, unroll=True, return_sequences=True, name="lstm")
    masking = [keras.layers.Masking()] if masked else []
    both = keras.layers.Bidirectional(layer, name="both")
    model = keras.Sequential([keras.Input((5, 2)), *masking, both])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        convert_model(model)
    texts = [str(each.message) for each in caught if "unroll" in str(each.message)]
    assert bool(texts) is masked
    assert all(text.endswith("without it: both/backward_lstm") for text in texts)
