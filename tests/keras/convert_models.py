"""Models with stock layers, for the tests of convert_model."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
from keras import layers
from pairs import Sizes, rounding

BATCH, TIME, INPUTS, UNITS = 4, 6, 3, 5
SIZES = Sizes(BATCH, TIME, 2 * UNITS, UNITS)
# A layer passes errors on to the next one. Dense layers multiply them by |weights| < 4.
PREDICTION_BOUND = 4 * rounding(SIZES, "float32")
Model = keras.Model
MODELS: list[Callable[[], Model]] = []


def model_of(make: Callable[[], Model]) -> Callable[[], Model]:
    MODELS.append(make)
    return make


@model_of
def sequential() -> Model:
    return keras.Sequential(
        [
            keras.Input((None, INPUTS)),
            layers.Masking(),
            layers.LSTM(UNITS, return_sequences=True, go_backwards=True, use_bias=False),
            layers.GRU(UNITS, name="memory", zero_output_for_mask=True),
            layers.Dense(2),
        ],
        name="outer",
    )


@model_of
def built_by_a_call() -> Model:
    return keras.Sequential([layers.GRU(UNITS, return_sequences=True), layers.LSTM(UNITS)])


@model_of
def wrapped() -> Model:
    backward = layers.LSTM(UNITS, return_sequences=True, go_backwards=True, dropout=0.2)
    forward = layers.LSTM(UNITS, return_sequences=True)
    return keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            layers.Bidirectional(forward, backward_layer=backward, merge_mode="mul"),
            layers.Bidirectional(layers.GRU(UNITS, return_sequences=True)),
            layers.Reshape((2, TIME // 2, 2 * UNITS)),
            layers.TimeDistributed(layers.Bidirectional(layers.LSTM(UNITS))),
        ]
    )


@model_of
def cells() -> Model:
    gru, lstm = layers.GRUCell(UNITS, seed=3, dropout=0.1), layers.LSTMCell(UNITS)
    return keras.Sequential(
        [
            keras.Input((TIME, INPUTS)),
            layers.RNN(gru, return_sequences=True, go_backwards=True),
            layers.Bidirectional(layers.RNN(lstm, return_sequences=True)),
            layers.RNN(layers.LSTMCell(UNITS, unit_forget_bias=False)),
        ]
    )


@model_of
def nested() -> Model:
    """Two inputs and outputs, one encoder called twice, states passed from layer to layer."""
    x = keras.Input((None, INPUTS))
    hidden, *states = layers.LSTM(UNITS, return_sequences=True, return_state=True)(x)
    encoder = keras.Model(x, [hidden, *states], name="encoder")
    decoder = keras.Sequential([layers.Dense(UNITS), layers.GRU(UNITS)], name="decoder")
    a, b = keras.Input((None, INPUTS), name="a"), keras.Input((None, INPUTS), name="b")
    first, *states = encoder(a)
    second, h, _ = encoder(b)
    third = layers.LSTM(UNITS, return_sequences=True)(second, initial_state=states)
    fourth = layers.GRU(UNITS)(third, initial_state=h)
    return keras.Model([a, b], {"x": decoder(first), "y": layers.Add()([fourth, decoder(third)])})


@model_of
def with_embedding() -> Model:
    """A mask that the Embedding makes; a layer called twice, with another mask by hand."""
    words = keras.Input((TIME,), dtype="int32")
    vectors = layers.Embedding(9, INPUTS, mask_zero=True)(words)
    shared = layers.LSTM(UNITS)
    both = shared(vectors) - shared(vectors, mask=words > 4)
    return keras.Model(words, layers.Concatenate()([both, layers.GRU(UNITS)(vectors)]))


def inputs_of(model: Model, rng: np.random.Generator) -> Any:
    """Padded sequences, as many as the model has inputs; words for an Embedding."""
    sequences = [rng.normal(size=(BATCH, TIME, INPUTS)).astype("float32") for _ in range(2)]
    for x in sequences:
        x[1, TIME // 2 :] = 0
    if any(isinstance(layer, layers.Embedding) for layer in model.layers):
        return rng.integers(9, size=(BATCH, TIME))
    return sequences if model.built and len(model.inputs) == 2 else sequences[0]


def outputs(model: Model, x: Any) -> list[np.ndarray]:
    return [np.asarray(y, "float64") for y in keras.tree.flatten(model(x))]


def randomised(model: Model, x: Any, rng: np.random.Generator) -> Model:
    model(x)
    for weight in model.weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    return model


def assert_near(got: list[np.ndarray], wanted: list[np.ndarray], bound: float) -> None:
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=bound)


def local_loss(y: Any, prediction: Any) -> Any:
    return keras.ops.mean((y - prediction) ** 4)
