"""StackedLSTM and StackedGRU become stock layers."""

import itertools
import re

import keras
import numpy as np
import pytest
from pairs import divided, make_mask

import tf_lstm_ops
from tf_lstm_ops.keras import StackedGRU, StackedLSTM

from .stacks import KINDS, B, H, I, T


@pytest.mark.parametrize(
    ("kind", "form", "functional"),
    divided(
        itertools.product(KINDS, ["forward", "backward", "both"], [False, True]),
        [("gru", "forward", False)],
        each=3,
    ),
)
def test_becomes_stock_layers(kind, form, functional, rng, tmp_path):
    """With the mask, which goes to the next layer, in a model and in its file.

    Without a mask where stock layers do not pass it on (test_convert_masks.py).
    """
    masked = keras.layers.LSTM(1).supports_masking
    layer = KINDS[kind][0](
        H,
        1 if form == "backward" else 3,
        bidirectional=form == "both",
        go_backwards=form == "backward",
        dropout=0.25,
        dropout_per="sequence",
        return_sequences=True,
        name="stack",
    )
    masking = [keras.layers.Masking()] if masked else []
    parts = [keras.Input((T, I)), *masking, layer, keras.layers.GRU(2)]
    model = keras.Sequential(parts)
    if functional:
        tensor = parts[0]
        for part in parts[1:]:
            tensor = part(tensor)
        model = keras.Model(parts[0], tensor)
    mask = make_mask("holes" if form != "backward" else "none", B, T, rng)
    x = rng.normal(size=(B, T, I)).astype("float32")
    x = x if mask is None else x * mask[..., np.newaxis]
    stock = tf_lstm_ops.keras.convert_model(model, to="stock")
    assert not any("tf_lstm_ops" in type(part).__module__ for part in stock._flatten_layers())
    stock.save(tmp_path / "stock.keras")
    for other in stock, keras.models.load_model(tmp_path / "stock.keras"):
        # Sums of ten products of about one in float32, through four layers.
        np.testing.assert_allclose(other(x), model(x), rtol=0, atol=1e-6)


def test_states_and_optimizer_become_those_of_stock_layers(rng):
    stack = StackedLSTM(H, 2, bidirectional=True, stateful=True)
    model = keras.Sequential([keras.Input((T, I), batch_size=B), stack])
    x = rng.normal(size=(B, T, I)).astype("float32")
    model.compile("adam", "mse", run_eagerly=True)
    model.fit(x, np.zeros((B, 2 * H)), batch_size=B, verbose=0)
    stock = tf_lstm_ops.keras.convert_model(model, to="stock")
    assert int(stock.optimizer.iterations) == 1
    np.testing.assert_allclose(stock(x), model(x), rtol=0, atol=1e-6)  # as above


def test_equal_names_in_nested_models(rng):
    parts = [
        keras.Sequential([keras.Input((T, I)), StackedGRU(H, 2, name="stack", **options)])
        for options in ({"return_sequences": True}, {"bidirectional": True})
    ]
    tensor = keras.Input((T, I))
    model = keras.Model(tensor, [part(tensor) for part in parts])
    stock = tf_lstm_ops.keras.convert_model(model, to="stock")
    x = rng.normal(size=(B, T, I)).astype("float32")
    for got, want in zip(stock(x), model(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)  # as above


REFUSED = {
    "projection": ({"projection_size": 2}, "stock layers have no projection_size"),
    "clip": ({"cell_clip": 3.0}, "stock layers have no cell_clip"),
    "state": ({"return_state": True}, "the states of several stock layers are not one result"),
    "backwards": ({"go_backwards": True}, "stock layers do not reverse the mask"),
    "regularizer": ({"activity_regularizer": "l2"}, "it has an activity_regularizer"),
    "masked": (
        {"bidirectional": True, "zero_output_for_mask": True},
        "keras.layers.Bidirectional sets zero_output_for_mask",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_stock_layers_cannot_express(case):
    options, message = REFUSED[case]
    tensor = keras.Input((T, I))
    model = keras.Model(tensor, StackedLSTM(H, 2, name="stack", **options)(tensor))
    with pytest.raises(ValueError, match=f"stack: {re.escape(message)}"):
        tf_lstm_ops.keras.convert_model(model, to="stock")


def test_stock_layers_cannot_express_where_it_is():
    tensor = keras.Input((T, I))
    stack = StackedGRU(H, 2, name="stack")
    given = keras.Model(tensor, stack(tensor, initial_state=[keras.ops.zeros((B, H))] * 2))
    wrapped = keras.Sequential([tensor, keras.layers.Bidirectional(StackedGRU(H, 2, name="s"))])
    plain = keras.Sequential([tensor, StackedGRU(H, 2, name="stack")])
    convert = tf_lstm_ops.keras.convert_model
    with pytest.raises(ValueError, match="stack: the model gives its initial_state"):
        convert(given, to="stock")
    with pytest.raises(ValueError, match="only a layer of a Sequential or functional model"):
        convert(wrapped, to="stock")
    with pytest.raises(ValueError, match="stack: one layer becomes several, which needs a copy"):
        convert(plain, to="stock", in_place=True)
