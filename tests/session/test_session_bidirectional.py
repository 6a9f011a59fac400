"""Sessions of Bidirectional layers that are no record of two directions."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from session.keras_models import C, assert_close, check, data_of, floats
from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import Session

MASKED = [True, False]
LAYERS: dict[str, Callable[..., tuple[Any, Any]]] = {
    "units": lambda **o: (layers.LSTM(2, **o), layers.LSTM(3, **o)),
    "functions": lambda **o: (layers.GRU(3, **o), layers.GRU(3, "relu", **o)),
    "bias": lambda **o: (ours.LSTM(3, **o), ours.LSTM(3, use_bias=False, **o)),
    "plain": lambda **o: (layers.SimpleRNN(3, "sigmoid", **o), layers.SimpleRNN(3, "elu", **o)),
    "cells": lambda **o: (layers.GRU(3, **o), layers.SimpleRNN(3, **o)),
    "equal": lambda **o: (layers.LSTM(3, **o), layers.LSTM(3, **o)),
}


def bidirectional(kind: str, merge_mode: str | None, **options: Any) -> Any:
    forward, _ = LAYERS[kind](**options)
    _, backward = LAYERS[kind](go_backwards=True, **options)
    return layers.Bidirectional(forward, backward_layer=backward, merge_mode=merge_mode)


@pytest.mark.parametrize("is_masked", MASKED)
@pytest.mark.parametrize("sequences", [True, False])
@pytest.mark.parametrize(
    ("kind", "merge_mode"),
    [
        *((kind, "concat") for kind in LAYERS if kind != "equal"),
        *((kind, None) for kind in ("units", "equal")),
        *(("functions", mode) for mode in ("sum", "mul", "ave")),
    ],
)
def test_results(
    kind: str, merge_mode: str | None, sequences: bool, is_masked: bool, rng: Any
) -> None:
    x = floats(6, C)
    y = layers.Masking()(x) if is_masked else x
    model = keras.Model(x, bidirectional(kind, merge_mode, return_sequences=sequences)(y))
    given = data_of(model, rng)
    given[0, 4:] = given[1, :2] = 0
    check(model, rng, given)


@pytest.mark.parametrize("merge_mode", ["concat", None])
@pytest.mark.parametrize("kind", ["functions", "equal"])
def test_states(kind: str, merge_mode: str | None, rng: Any) -> None:
    """Those of the first layer, then those of the second one, go in and out."""
    x = floats(6, C)
    first = bidirectional(kind, merge_mode, return_state=True)
    states = first(x)[-(4 if kind == "equal" else 2) :]
    second = bidirectional(kind, merge_mode, return_sequences=True)
    check(keras.Model(x, second(x, initial_state=states)), rng)


def test_a_recurrent_layer_of_each_sequence(rng: Any) -> None:
    """The mask goes on with both."""
    x = floats(6, C)
    y = bidirectional("equal", None, return_sequences=True)(layers.Masking()(x))
    model = keras.Model(x, [ours.GRU(2)(each) for each in y])
    given = data_of(model, rng)
    given[0, 3:] = 0
    check(model, rng, given)


@pytest.mark.parametrize("activation", ["sigmoid", "elu", "linear", "gelu"])
def test_functions_of_a_plain_layer(activation: str, rng: Any) -> None:
    x = floats(6, C)
    model = keras.Model(x, layers.SimpleRNN(3, activation, return_sequences=True)(x))
    session = check(model, rng)
    stream = session.stream(2)
    given = rng.normal(size=(2, 6, C)).astype("float32")
    assert_close(np.stack([stream(given[:, t]) for t in range(6)], axis=1), session(given))


def test_files(tmp_path: Any, rng: Any) -> None:
    x = floats(6, C)
    model = keras.Model(x, bidirectional("functions", None)(x))
    session, given = Session(model), data_of(model, rng)
    session.save(tmp_path / "model.session")
    assert_close(Session.load(tmp_path / "model.session")(given), session(given))
