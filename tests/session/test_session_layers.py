"""Each Keras layer in a session against ``model(x)``: alone, and within TimeDistributed."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers

from session import keras_models
from session.keras_models import check
from tf_lstm_ops.inference import file

C, T = 6, 8
ACTIVATIONS = (
    *file.FUNCTIONS,
    *("softmax", "relu6", "celu", "selu", "softplus", "squareplus"),
    *("soft_shrink", "hard_shrink", "tanh_shrink", "sparse_plus", "sparse_sigmoid", "exponential"),
    *("hard_silu", "mish", "log_sigmoid", "log_softmax"),
)
Layers = Callable[[], Any]

# A layer, or a list of them, on a sequence [B, T, C].
SEQUENCES: dict[str, Layers] = {
    "dense": lambda: layers.Dense(4, "mish"),
    "leaky": lambda: layers.LeakyReLU(0.4),
    "leaky, no slope": lambda: layers.LeakyReLU(0.0),
    "elu": lambda: layers.ELU(0.7),
    "relu": lambda: layers.ReLU(1.5, 0.1, 0.2),
    "relu, maximum": lambda: layers.ReLU(0.5),
    "relu, slope": lambda: layers.ReLU(negative_slope=0.3),
    "relu, threshold": lambda: layers.ReLU(threshold=0.4),
    "softmax": lambda: layers.Softmax(),
    "glu": lambda: layers.Activation("glu"),
    "prelu": lambda: layers.PReLU(shared_axes=[1]),
    "prelu of steps": lambda: layers.PReLU(),
    "prelu of all": lambda: layers.PReLU(shared_axes=[1, 2]),
    "batch norm": lambda: layers.BatchNormalization(),
    "batch norm, plain": lambda: layers.BatchNormalization(center=False, scale=False, epsilon=0.1),
    "layer norm": lambda: layers.LayerNormalization(),
    "layer norm, plain": lambda: layers.LayerNormalization(center=False, scale=False, epsilon=0.1),
    "layer norm, axis 2": lambda: layers.LayerNormalization(axis=2),
    "rms norm": lambda: layers.RMSNormalization(),
    "repeat": lambda: [layers.GlobalMaxPooling1D(), layers.RepeatVector(3)],
    "upsampling": lambda: layers.UpSampling1D(3),
    "padding": lambda: layers.ZeroPadding1D((1, 2)),
    "cropping": lambda: layers.Cropping1D((2, 1)),
    "flatten": lambda: [layers.Flatten(), layers.Dense(3)],
    "reshape": lambda: [layers.Reshape((4, 2 * C)), layers.Dense(3)],
    "reshape, open": lambda: [layers.Reshape((-1, C // 2)), layers.Dense(3)],
    "permute": lambda: [layers.Permute((2, 1)), layers.Dense(3)],
    "lstm": lambda: layers.LSTM(5, return_sequences=True),
    "gru": lambda: layers.GRU(5, go_backwards=True, return_sequences=True),
    "rnn": lambda: layers.SimpleRNN(5),
    "bidirectional": lambda: layers.Bidirectional(layers.LSTM(5, return_sequences=True)),
    "masking": lambda: [layers.Masking(0.5), layers.LSTM(3)],
    **{
        f"conv {padding} {strides} {dilation} {groups}": (
            lambda p=padding, s=strides, d=dilation, g=groups: layers.Conv1D(
                4, 3, s, p, dilation_rate=d, groups=g, activation="relu"
            )
        )
        for padding in ("valid", "same", "causal")
        for strides, dilation, groups in ((1, 1, 1), (2, 1, 2), (1, 2, 1), (3, 1, 1))
    },
    **{
        f"{kind.__name__} {padding} {strides} {dilation}": (
            lambda k=kind, a=first, p=padding, s=strides, d=dilation: k(
                *a, strides=s, padding=p, dilation_rate=d, activation="tanh"
            )
        )
        for kind, first in ((layers.DepthwiseConv1D, (3,)), (layers.SeparableConv1D, (5, 3)))
        for padding in ("valid", "same")
        for strides, dilation in ((1, 1), (2, 1), (1, 2))
    },
    "depthwise, multiplier": lambda: layers.DepthwiseConv1D(2, depth_multiplier=3, use_bias=False),
    "separable, multiplier": lambda: layers.SeparableConv1D(4, 2, depth_multiplier=2),
    **{
        f"{kind.__name__} {size} {strides} {padding}": (
            lambda k=kind, n=size, s=strides, p=padding: k(n, s, p)
        )
        for kind in (layers.MaxPooling1D, layers.AveragePooling1D)
        for size, strides in ((2, None), (3, 2), (2, 3))
        for padding in ("valid", "same")
    },
    **{
        f"{kind.__name__} {keep}": (lambda k=kind, d=keep: k(keepdims=d))
        for kind in (layers.GlobalMaxPooling1D, layers.GlobalAveragePooling1D)
        for keep in (False, True)
    },
}


def listed(made: Any) -> list[keras.Layer]:
    return made if isinstance(made, list) else [made]


@pytest.mark.parametrize("kind", SEQUENCES)
def test_layers(kind: str, rng: np.random.Generator) -> None:
    session = check(keras.Sequential([keras.Input((T, C)), *listed(SEQUENCES[kind]())]), rng)
    assert session._opened.content[8] in (1, 2)


@pytest.mark.parametrize("kind", [kind for kind in SEQUENCES if kind != "masking"])
def test_time_distributed(kind: str, rng: np.random.Generator) -> None:
    """Each layer by itself, and a chain of layers as one nested model."""
    made = listed(SEQUENCES[kind]())
    windows = keras.Input((2, T, C))
    y = windows
    for layer in made:
        y = layers.TimeDistributed(layer)(y)
    check(keras.Model(windows, y), rng)
    inner = keras.Sequential([keras.Input((T, C)), *listed(SEQUENCES[kind]())])
    check(keras.Model(windows, layers.TimeDistributed(inner)(windows)), rng)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, rng: np.random.Generator) -> None:
    x = keras.Input((None, C))
    y = layers.Conv1D(4, 2, activation=name)(layers.Activation(name)(x))
    data = rng.normal(size=(2, T, C), scale=0.3).astype("float32")  # e^(e^(e^z)) is finite
    check(keras.Model(x, layers.Dense(3, name)(y)), rng, data)


def test_every_activation_of_keras_is_known() -> None:
    """But those that are no formula, or need arguments."""
    others = {"deserialize", "get", "serialize", "glu", "sparsemax", "threshold"}
    names = {name for name in dir(keras.activations) if not name.startswith("_")} - others
    same = {"swish": "silu", "hard_swish": "hard_silu"}
    assert {same.get(name, name) for name in names} == {*ACTIVATIONS}


@pytest.mark.parametrize("mask_zero", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32"])
def test_embedding(dtype: str, mask_zero: bool, rng: np.random.Generator) -> None:
    ids = keras.Input((None,), dtype=dtype)
    y = layers.Embedding(keras_models.ROWS, 4, mask_zero=mask_zero)(ids)
    model = keras.Model(ids, layers.LSTM(3)(layers.Dropout(0.5)(y)))
    x = rng.integers(0, 3, (5, 7)).astype(dtype)
    session = check(model, rng, x)
    assert [spec.dtype for spec in session.inputs] == ["int32"]


def test_embedding_without_time(rng: np.random.Generator) -> None:
    ids = keras.Input((1,), dtype="int32")
    y = layers.Flatten()(layers.Embedding(keras_models.ROWS, 4)(ids))
    check(keras.Model(ids, layers.Dense(2)(y)), rng)


NEIGHBOURS: dict[str, Layers] = {
    "behind dense": lambda: [layers.Dense(5), layers.BatchNormalization()],
    "behind conv": lambda: [layers.Conv1D(4, 2, groups=2), layers.BatchNormalization()],
    "behind depthwise": lambda: [
        layers.DepthwiseConv1D(2, depth_multiplier=2),
        layers.BatchNormalization(),
    ],
    "before dense": lambda: [layers.BatchNormalization(), layers.Dense(5, "tanh")],
    "before conv": lambda: [layers.BatchNormalization(), layers.Conv1D(4, 2, activation="tanh")],
}
NOT_FOLDED: dict[str, Layers] = {
    "behind an activation": lambda: [layers.Dense(5, "tanh"), layers.BatchNormalization()],
    "before padding": lambda: [layers.BatchNormalization(), layers.Conv1D(4, 2, padding="same")],
    "before causal": lambda: [layers.BatchNormalization(), layers.Conv1D(4, 2, padding="causal")],
    "between": lambda: [
        layers.LSTM(4, return_sequences=True),
        layers.BatchNormalization(),
        layers.LSTM(3),
    ],
}


@pytest.mark.parametrize("kind", NEIGHBOURS | NOT_FOLDED)
def test_folded_batch_normalization(kind: str, rng: np.random.Generator) -> None:
    made = (NEIGHBOURS | NOT_FOLDED)[kind]()
    session = check(keras.Sequential([keras.Input((T, C)), *made]), rng)
    assert session._opened.layers == (1 if kind in NEIGHBOURS else len(made))


def test_a_value_with_two_readers_is_not_folded(rng: np.random.Generator) -> None:
    x = keras.Input((T, C))
    y = layers.Dense(C)(x)
    z = layers.BatchNormalization()(y)
    check(keras.Model(x, [layers.Add()([y, z]), layers.Dense(2)(z), z]), rng)
