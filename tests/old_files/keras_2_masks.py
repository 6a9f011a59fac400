"""Models of Keras 2 whose masks Keras 3 would pass on by other rules; keras_2_files.py writes them.

All inputs but the states are sequences of words, of which 0 is padding.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from tf_keras import Input, Model, Sequential
from tf_keras import layers as k

WORDS, STEPS, UNITS = 9, 6, 4


def words() -> Any:
    return Input((STEPS,), dtype="int32")


def words_of(tensor: Any, values: Any) -> Any:
    """Random values as words, many of them padding, if the input takes words."""
    if tensor.dtype.name != "int32":
        return values
    return (np.abs(values) * 6 % WORDS).astype("int32") * (values < 0.5)


def embedded(x: Any, size: int = 5) -> Any:
    return k.Embedding(WORDS, size, mask_zero=True)(x)


def states(count: int, units: int = UNITS) -> list[Any]:
    return [Input((units,)) for _ in range(count)]


def with_state(layer: Any, count: int, sequence: Any = embedded) -> Callable[[], Any]:
    """A layer with initial states, and a layer that uses the mask of its result."""

    def make() -> Any:
        x, given = words(), states(count)
        y = layer()(sequence(x), initial_state=given)
        return Model([x, *given], k.GRU(3)(y))

    return make


def encoder_and_decoder() -> Any:
    x, y = words(), words()
    table = k.Embedding(WORDS, 5, mask_zero=True)
    _, h, c = k.LSTM(UNITS, return_state=True)(table(x))
    decoder = k.LSTM(UNITS, return_sequences=True, return_state=True)
    outputs, *_ = decoder([table(y), h, c])
    again = decoder(table(x), initial_state=[h, c])[1]
    return Model([x, y], [k.TimeDistributed(k.Dense(3))(outputs), again])


def attention() -> Any:
    x, y = words(), words()
    keys, state = k.GRU(UNITS, return_sequences=True, return_state=True)(embedded(x))
    queries = k.GRU(UNITS, return_sequences=True)(embedded(y), initial_state=state)
    context = k.Attention()([queries, keys])
    added = k.AdditiveAttention()([context, keys])
    return Model([x, y], k.LSTM(3)(k.Concatenate()([added, queries])))


def merges(merge: Any) -> Callable[[], Any]:
    """One with another mask, one without."""

    def make() -> Any:
        x, y = words(), words()
        both = merge()([embedded(x), embedded(y)])
        one = merge()([k.Dropout(0.1)(both), k.Embedding(WORDS, both.shape[-1])(y)])
        pooled = k.GlobalAveragePooling1D()(one)
        return Model([x, y], [k.LSTM(3)(both), pooled, k.SimpleRNN(3)(k.Dense(2)(one))])

    return make


def characters(wrapped: Callable[[], Any]) -> Callable[[], Any]:
    """The characters of words."""

    def make() -> Any:
        x = Input((3, STEPS), dtype="int32")
        return Model(x, k.LSTM(3)(wrapped()(x)))

    return make


def of_characters() -> Any:
    layers = [
        Input((3, STEPS), dtype="int32"),
        k.TimeDistributed(k.Embedding(WORDS, 3, mask_zero=True)),
        k.TimeDistributed(k.Bidirectional(k.GRU(2))),
        k.LSTM(3),
    ]
    return Sequential(layers)


def model_of_a_step() -> Any:
    x = Input((STEPS,), dtype="int32")
    inner = k.LSTM(3)(embedded(x))
    return k.TimeDistributed(Model(x, inner))


def model_of_sequences() -> Any:
    x = Input((STEPS,), dtype="int32")
    return k.TimeDistributed(Model(x, k.LSTM(3, return_sequences=True)(embedded(x))))


def characters_of_a_model() -> Any:
    x = Input((3, STEPS), dtype="int32")
    y = k.TimeDistributed(k.GRU(3))(model_of_sequences()(x))
    return Model(x, k.LSTM(3)(y))


def nested() -> Any:
    """The mask goes into a model and out of it."""
    x, given = words(), states(1)
    inner = Input((STEPS, 5))
    model = Model(inner, k.Dropout(0.1)(k.LSTM(5, return_sequences=True)(inner)), name="inner")
    y = k.GRU(UNITS, return_sequences=True)(model(embedded(x)), initial_state=given)
    return Model([x, *given], [y, k.LSTM(2)(model(embedded(x)))])


def identity() -> Any:
    """Keras 2 does not pass the mask on."""
    x = words()
    return Model(x, k.LSTM(3)(k.Rescaling(0.5)(embedded(x))))


def nested_with_states() -> Any:
    """In the inner model the mask is that of its input."""
    x, given = words(), states(1)
    inner, state = Input((STEPS, 5)), Input((UNITS,))
    model = Model([inner, state], k.GRU(UNITS)(inner, initial_state=state), name="inner")
    return Model([x, *given], model([embedded(x), *given]))


def masking() -> Any:
    x, given = words(), states(1)
    scaled = k.Masking()(k.Embedding(WORDS, 3, embeddings_initializer="ones")(x))
    return Model([x, *given], k.GRU(UNITS, return_sequences=True)(scaled, initial_state=given))


MODELS: dict[str, Callable[[], Any]] = {
    "masks_lstm": with_state(lambda: k.LSTM(UNITS, return_sequences=True), 2),
    "masks_gru": with_state(lambda: k.GRU(UNITS, return_sequences=True, go_backwards=True), 1),
    "masks_plain": with_state(lambda: k.SimpleRNN(UNITS, return_sequences=True), 1),
    "masks_cell": with_state(lambda: k.RNN(k.LSTMCell(UNITS), return_sequences=True), 2),
    "masks_cells": with_state(
        lambda: k.RNN([k.GRUCell(UNITS), k.SimpleRNNCell(UNITS)], return_sequences=True), 2
    ),
    "masks_bidirectional": with_state(
        lambda: k.Bidirectional(k.LSTM(UNITS, return_sequences=True)), 4
    ),
    "masks_dropout": with_state(
        lambda: k.GRU(UNITS, return_sequences=True), 1, lambda x: k.Dropout(0.1)(embedded(x))
    ),
    "masks_encoder_and_decoder": encoder_and_decoder,
    "masks_attention": attention,
    "masks_add": merges(k.Add),
    "masks_multiply": merges(k.Multiply),
    "masks_concatenate": merges(k.Concatenate),
    "masks_of_characters": of_characters,
    "masks_model_of_a_step": characters(model_of_a_step),
    "masks_model_of_sequences": characters_of_a_model,
    "masks_nested": nested,
    "masks_masking": masking,
    "masks_identity": identity,
    "masks_nested_with_states": nested_with_states,
}
