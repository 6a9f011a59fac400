"""A program: writes models of tf_keras, which is Keras 2, as .h5 files, with inputs and outputs.

python keras_2_files.py FOLDER [NAME ...] writes NAME.h5, NAME_weights.h5, NAME.keras and NAME.npz
for each model, and the SavedModel NAME for some: in the .npz file x0, x1, ... and y0, y1, ... of
the model.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras_2_masks  # beside this file
import keras_2_names
import numpy as np
import tf_keras
from tf_keras import Input, Model, Sequential
from tf_keras import layers as k

UNITS, FEATURES, STEPS = 5, 3, 6
HARD = {"recurrent_activation": "hard_sigmoid"}


def lstm() -> Any:
    return Sequential([k.LSTM(UNITS, input_shape=(None, FEATURES))])


def stacked_hard_lstm() -> Any:
    return Sequential(
        [
            k.LSTM(UNITS, return_sequences=True, input_shape=(STEPS, FEATURES), **HARD),
            k.Dropout(0.3),
            k.LSTM(4, go_backwards=True, use_bias=False, **HARD),
            k.Dense(2, activation="softmax"),
        ]
    )


def hard_gru(reset_after: bool) -> Callable[[], Any]:
    def make() -> Any:
        layer = k.GRU(UNITS, reset_after=reset_after, input_shape=(None, FEATURES), **HARD)
        return Sequential([layer])

    return make


def hard_everywhere() -> Any:
    x = Input((STEPS, FEATURES))
    h = k.TimeDistributed(k.Dense(4, activation="hard_sigmoid"))(x)
    h = k.Conv1D(4, 2, activation="hard_sigmoid")(h)
    h = k.SimpleRNN(4, activation="hard_sigmoid", return_sequences=True)(h)
    h = k.LSTM(4, activation="hard_sigmoid", return_sequences=True)(h)
    return Model(x, k.Activation("hard_sigmoid")(h))


def bidirectional() -> Any:
    inner = k.GRU(UNITS, return_sequences=True, reset_after=False, **HARD)
    return Sequential(
        [
            k.Masking(input_shape=(STEPS, FEATURES)),
            k.Bidirectional(inner, merge_mode="sum"),
            k.Bidirectional(k.LSTM(4, **HARD), backward_layer=k.LSTM(4, go_backwards=True)),
        ]
    )


def named_with_slashes() -> Any:
    x = Input((None, FEATURES), name="cqt/mag")
    h = k.LSTM(UNITS, name="encoder/lstm", return_sequences=True)(x)
    return Model(x, k.BatchNormalization(name="norm/1")(h))


def shared_and_several() -> Any:
    a, b = Input((STEPS, FEATURES), name="a"), Input((STEPS, FEATURES), name="b")
    encoder = k.LSTM(UNITS, return_sequences=True, return_state=True, name="encoder")
    first, h, c = encoder(a)
    second = encoder(b)[0]
    third = k.LSTM(UNITS, return_sequences=True)(second, initial_state=[h, c])
    joined = k.Concatenate()([first, third])
    return Model([a, b], [k.Dense(2)(joined), k.GlobalMaxPooling1D()(joined), h])


def nested() -> Any:
    inner = Sequential(
        [k.Dense(4, input_shape=(STEPS, FEATURES)), k.BatchNormalization(), k.GRU(4)], name="inner"
    )
    inner.layers[0].trainable = False
    x = Input((STEPS, FEATURES))
    state = Input((STEPS, FEATURES))
    outer = Model([x, state], k.Add()([inner(x), inner(state)]), name="outer")
    p, q = Input((STEPS, FEATURES)), Input((STEPS, FEATURES))
    return Model([p, q], k.LayerNormalization()(outer([p, q])))


def cells() -> Any:
    stack = k.StackedRNNCells([k.LSTMCell(4, **HARD), k.LSTMCell(UNITS, **HARD)])
    return Sequential(
        [k.RNN(stack, return_sequences=True, input_shape=(STEPS, FEATURES)), k.RNN(k.GRUCell(3))]
    )


def hard_cells() -> Any:
    """Bidirectional has the same cell twice, TimeDistributed a cell whose activation is scaled."""
    plain = k.RNN(k.SimpleRNNCell(4, activation="hard_sigmoid"))
    x = Input((STEPS, FEATURES))
    h = k.RNN(k.LSTMCell(4, **HARD), return_sequences=True)(x)
    h = k.Bidirectional(k.RNN(k.GRUCell(4, **HARD), return_sequences=True))(h)
    return Model(x, k.TimeDistributed(plain)(k.Reshape((2, 3, 8))(h)))


def models_of_a_step() -> Any:
    """A normalization, whose values are weights, and models inside of wrappers."""
    x = Input((FEATURES,))
    inner = Model(x, k.Dense(4)(k.Normalization()(x)))
    last = Sequential([k.Dense(3), k.BatchNormalization(), k.Dense(2)])
    layers = [k.TimeDistributed(inner, input_shape=(STEPS, FEATURES)), k.GRU(4), k.Reshape((2, 2))]
    return Sequential([*layers, k.TimeDistributed(last)])


def text() -> Any:
    return Sequential(
        [
            k.Embedding(FEATURES * 10, 4, input_length=STEPS, mask_zero=True),
            k.SpatialDropout1D(0.2),
            k.Bidirectional(k.LSTM(UNITS, return_sequences=True)),
            k.LSTM(3, recurrent_dropout=0.1),
            k.LeakyReLU(alpha=0.1),
            k.Dense(2),
        ]
    )


def images() -> Any:
    return Sequential(
        [
            k.ConvLSTM2D(3, 2, input_shape=(STEPS, 5, 5, 2), return_sequences=True),
            k.ConvLSTM2D(2, 2, **HARD),
            k.DepthwiseConv2D(2),
            k.BatchNormalization(),
            k.Flatten(),
            k.Dense(2),
        ]
    )


def attention() -> Any:
    x = Input((STEPS, FEATURES))
    h = k.MultiHeadAttention(2, 4)(x, x)
    return Model(x, k.Attention()([k.SeparableConv1D(4, 2)(h), k.Dense(4)(h)]))


def stateful() -> Any:
    return Sequential([k.LSTM(UNITS, stateful=True, batch_input_shape=(2, STEPS, FEATURES))])


MODELS: dict[str, Callable[[], Any]] = {
    "lstm": lstm,
    "stacked_hard_lstm": stacked_hard_lstm,
    "hard_gru_after": hard_gru(True),
    "hard_gru_before": hard_gru(False),
    "hard_everywhere": hard_everywhere,
    "bidirectional": bidirectional,
    "named_with_slashes": named_with_slashes,
    "shared_and_several": shared_and_several,
    "nested": nested,
    "cells": cells,
    "hard_cells": hard_cells,
    "models_of_a_step": models_of_a_step,
    "text": text,
    "images": images,
    "attention": attention,
    "stateful": stateful,
}


def main() -> None:
    folder = Path(sys.argv[1])
    rng = np.random.default_rng(0)
    every = MODELS | keras_2_masks.MODELS
    for name in sys.argv[2:] or every:
        tf_keras.utils.set_random_seed(1)
        tf_keras.backend.clear_session()
        model = every[name]()
        model.set_weights(
            [rng.uniform(0, 1, w.shape) - 0.4 * (w.ndim > 1) for w in model.get_weights()]
        )
        xs = [rng.normal(size=(2, *x.shape[1:])).astype("float32") for x in _with_steps(model)]
        if name == "text":
            xs = [rng.integers(0, 30, (2, STEPS)).astype("int32")]
        if name.startswith("masks_"):
            xs = list(map(keras_2_masks.words_of, model.inputs, xs))
        if name == "bidirectional":
            xs[0][1, 4:] = 0
        ys = model.predict(xs[0] if len(xs) == 1 else xs, verbose=0)
        ys = ys if isinstance(ys, list) else [ys]
        arrays = {f"x{n}": x for n, x in enumerate(xs)} | {f"y{n}": y for n, y in enumerate(ys)}
        np.savez(folder / f"{name}.npz", **arrays)
        if model.stateful:
            model.reset_states()
        model.save(folder / f"{name}.h5")
        model.save(folder / f"{name}.keras")
        if name in keras_2_names.SAVED_MODELS:
            model.save(folder / name, save_format="tf")
        (folder / f"{name}.json").write_text(model.to_json())
        model.save_weights(folder / f"{name}_weights.h5")


def _with_steps(model: Any) -> list[Any]:
    """The inputs, whose unknown sizes are filled."""
    return [np.empty([STEPS if s is None else s for s in x.shape]) for x in model.inputs]


if __name__ == "__main__":
    main()
