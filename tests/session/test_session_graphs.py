"""Functional models with branches, several inputs and outputs, against ``model(x)``."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from session.keras_models import (
    ROWS,
    C,
    assert_close,
    check,
    data_of,
    embedded,
    floats,
    ids,
    with_random_weights,
)
from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import Session

T = 8
MERGES = ("Add", "Multiply", "Average", "Maximum", "Minimum", "Concatenate")


def _merges() -> keras.Model:
    x = floats()
    y, z = layers.Dense(4)(x), layers.Dense(4, "relu")(x)
    made = [getattr(layers, name)()([y, z, y]) for name in MERGES]
    made += [layers.Subtract()([y, z]), layers.Multiply()([y, layers.Dense(1)(x)])]
    made.append(layers.Concatenate(axis=2)([y, x]))
    made.append(layers.Concatenate(axis=1)([y, z]))
    return keras.Model(x, made)


def _heads() -> keras.Model:
    """As Clair3: one trunk, four heads."""
    x = floats(T, C)
    y = layers.Bidirectional(layers.LSTM(4, return_sequences=True))(x)
    y = layers.Dense(5, "selu")(layers.Flatten()(layers.Dropout(0.2)(y)))
    return keras.Model(x, [layers.Dense(n, "softmax")(y) for n in (2, 3, 4, 5)])


def _encoder_and_decoder() -> keras.Model:
    source, target = ids(), ids()
    _, h, c = ours.LSTM(5, return_state=True)(embedded(source, mask_zero=False))
    y = ours.LSTM(5, return_sequences=True)(embedded(target, mask_zero=False), initial_state=[h, c])
    return keras.Model([source, target], layers.Dense(ROWS, "softmax")(y))


def _decoder() -> keras.Model:
    """A step of a decoder, whose states are inputs and outputs."""
    x, h = ids(1), keras.Input((5,))
    y, state = layers.GRU(5, return_sequences=True, return_state=True)(
        embedded(x, mask_zero=False), initial_state=h
    )
    return keras.Model([x, h], [layers.Dense(ROWS)(y), state])


def _states() -> keras.Model:
    x, results = floats(), []
    for made in (
        *(layers.LSTM(3, return_state=True), layers.GRU(3, return_state=True)),
        ours.LSTM(4, projection_size=2, return_state=True, return_sequences=True),
        ours.SimpleRNN(3, return_state=True, go_backwards=True),
        ours.StackedLSTM(3, 2, return_state=True, bidirectional=True),
        ours.StackedGRU(3, 2, return_state=True, return_sequences=True),
        layers.Bidirectional(layers.LSTM(3, return_state=True)),
        ours.Bidirectional(ours.GRU(3, return_state=True, return_sequences=True), merge_mode="sum"),
    ):
        results += made(x)
    return keras.Model(x, results)


def _bidirectional_decoder() -> keras.Model:
    x, y = floats(), floats(None, 4)
    states = layers.Bidirectional(layers.LSTM(3, return_state=True))(x)[1:]
    return keras.Model([x, y], layers.Bidirectional(layers.LSTM(3))(y, initial_state=states))


def _stacked_decoder() -> keras.Model:
    x, y = floats(), floats(None, 4)
    states = ours.StackedLSTM(3, 2, return_state=True)(x)[1:]
    return keras.Model([x, y], ours.StackedLSTM(3, 2)(y, initial_state=states))


def _siamese() -> keras.Model:
    """A nested model that is called twice, with a layer that is called twice."""
    x = floats()
    dense = layers.Dense(C, "tanh")
    inner = keras.Model(x, layers.LSTM(4)(dense(dense(x))))
    first, second = floats(), floats()
    return keras.Model([first, second], layers.Subtract()([inner(first), inner(second)]))


def _nested() -> keras.Model:
    """Models with several inputs and outputs within a model."""
    a, b = floats(), floats(None, 4)
    both = keras.Model([a, b], [layers.Concatenate()([a, b]), layers.Dense(3)(b)])
    x = floats()
    joint, second = both([x, layers.Dense(4)(x)])
    chain = keras.Sequential([layers.Dense(3), layers.LeakyReLU()])
    return keras.Model(x, layers.Add()([chain(joint), second]))


def _tagger() -> keras.Model:
    """As DeLFT: embeddings of characters in each word, and vectors of words."""
    characters, words = ids(None, 5), floats()
    y = layers.TimeDistributed(embedded_layer(4))(characters)
    y = layers.TimeDistributed(layers.Bidirectional(layers.LSTM(3)))(y)
    y = layers.Concatenate()([words, y])
    y = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(y)
    return keras.Model([words, characters], layers.Dense(4)(y))


def embedded_layer(units: int) -> Any:
    return layers.Embedding(ROWS, units, mask_zero=True)


def _residual() -> keras.Model:
    x = floats(None, C)
    y = x
    for dilation in (1, 2):
        z = layers.Conv1D(C, 3, padding="causal", dilation_rate=dilation)(y)
        y = layers.Add()([y, layers.Activation("relu")(layers.BatchNormalization()(z))])
    return keras.Model(x, layers.GlobalMaxPooling1D()(y))


def _distributed_model() -> keras.Model:
    """A nested model with branches and masks for each step."""
    window = ids(5)
    y = embedded(window)
    y = layers.Concatenate()([layers.LSTM(3)(y), layers.GlobalAveragePooling1D()(y)])
    windows = ids(4, 5)
    y = layers.TimeDistributed(keras.Model(window, y))(windows)
    return keras.Model(windows, layers.GRU(3)(y))


def _unused() -> keras.Model:
    x, y = floats(), floats()
    return keras.Model([x, y], [layers.Dense(2)(x), layers.Dense(2)(y), x])


def _unused_sizes() -> keras.Model:
    """Sizes and types of inputs that no output needs are not those of others."""
    x, numbers, other = floats(), keras.Input((None,)), ids(None, 2)
    return keras.Model([numbers, other, x], layers.LSTM(2)(x))


def _unused_of_identities() -> keras.Model:
    x, other = floats(), keras.Input((None,))
    return keras.Model([other, x], layers.Dropout(0.1)(x))


MODELS: dict[str, Callable[[], keras.Model]] = {
    name.removeprefix("_"): function
    for name, function in dict(globals()).items()
    if name.startswith("_") and callable(function) and not name.startswith("__")
}


@pytest.mark.parametrize("kind", MODELS)
def test_models(kind: str, rng: np.random.Generator) -> None:
    check(MODELS[kind](), rng)


@pytest.mark.parametrize("kind", ["encoder_and_decoder", "tagger", "nested", "states"])
def test_a_saved_session(kind: str, rng: np.random.Generator, tmp_path: Any) -> None:
    model = MODELS[kind]()
    session, x = check(model, rng), data_of(model, rng)
    session.save(tmp_path / "model")
    loaded = Session.load(tmp_path / "model", threads=2)
    for a, b in zip(*map(keras.tree.flatten, (loaded(x), session(x))), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("inputs", [list, tuple, dict])
@pytest.mark.parametrize("outputs", [list, tuple, dict])
def test_structures(inputs: type, outputs: type, rng: np.random.Generator) -> None:
    tensors = [keras.Input((None, n), name=name) for n, name in ((3, "second"), (2, "first"))]
    results = [layers.Dense(3)(tensors[1]), layers.Concatenate()(tensors)]
    data = [rng.normal(size=(2, 5, n)).astype("float32") for n in (3, 2)]

    def structured(kind: type, values: list[Any]) -> Any:
        return kind(zip(["second", "first"], values, strict=True)) if kind is dict else kind(values)

    model = keras.Model(structured(inputs, tensors), structured(outputs, results))
    with_random_weights(model, rng)
    x = structured(inputs, data)
    got, want = Session(model)(x), model(x)
    if outputs is dict:
        assert isinstance(got, dict) and {*got} == {*want}
        for name in got:
            assert_close(got[name], np.asarray(want[name]))
    else:
        assert_close(got, [np.asarray(each) for each in want])
