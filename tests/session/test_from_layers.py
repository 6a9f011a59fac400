"""Sessions from arrays, with NumPy only, against the sessions of the same Keras layers."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
from keras import layers as stock

import tf_lstm_ops
from session.keras_models import ROWS, with_random_weights
from session.without_tensorflow import HOOK
from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

C, T = 4, 6


def same(chain: Any, model: keras.Model, x: Any, rng: np.random.Generator) -> None:
    """`chain` makes layers from the weights of the model. The bytes of the files are equal."""
    with_random_weights(model, rng)
    ours, theirs = Session.from_layers(chain(*model.get_weights())), Session(model)
    np.testing.assert_array_equal(ours(x), theirs(x))
    assert ours._opened.content.tobytes() == theirs._opened.content.tobytes()


# Keras' Bidirectional sets the second one.
SEQUENCE: Any = {"return_sequences": True, "zero_output_for_mask": True}
CASES: dict[str, tuple[Callable[..., list[Any]], Callable[[], list[Any]]]] = {
    "dense": (
        lambda k, b: [layers.Dense(k, b, "gelu")],
        lambda: [stock.Dense(3, "gelu")],
    ),
    "conv": (
        lambda k, b: [layers.Conv1D(k, b, 1, "causal", 2, 2, "relu")],
        lambda: [stock.Conv1D(6, 3, 1, "causal", dilation_rate=2, groups=2, activation="relu")],
    ),
    "depthwise": (
        lambda k, b: [layers.DepthwiseConv1D(k, b, 2, "same")],
        lambda: [stock.DepthwiseConv1D(3, 2, "same", depth_multiplier=2)],
    ),
    "separable": (
        lambda d, p, b: [layers.SeparableConv1D(d, p, b, activation="tanh")],
        lambda: [stock.SeparableConv1D(5, 2, activation="tanh")],
    ),
    "batch norm": (
        lambda g, b, m, v: [
            layers.BatchNormalization(gamma=g, beta=b, mean=m, variance=v, epsilon=0.1)
        ],
        lambda: [stock.BatchNormalization(epsilon=0.1)],
    ),
    "layer norm": (
        lambda g, b: [layers.LayerNormalization(C, g, b)],
        lambda: [stock.LayerNormalization()],
    ),
    "rms norm": (
        lambda s: [layers.RMSNormalization(C, s)],
        lambda: [stock.RMSNormalization()],
    ),
    "lstm": (
        lambda *w: [layers.Masking(0.5), layers.LSTM(w, return_sequences=True)],
        lambda: [stock.Masking(0.5), stock.LSTM(3, return_sequences=True)],
    ),
    "gru": (
        lambda *w: [layers.GRU(w, "relu", go_backwards=True)],
        lambda: [stock.GRU(3, "relu", go_backwards=True)],
    ),
    "gru, reset before": (
        lambda *w: [layers.GRU(GRUWeights.from_keras([*w]))],
        lambda: [stock.GRU(3, reset_after=False)],
    ),
    "simple rnn": (
        lambda *w: [layers.SimpleRNN(w, "relu")],
        lambda: [stock.SimpleRNN(3, "relu")],
    ),
    "bidirectional": (
        lambda *w: [
            layers.Bidirectional(
                layers.LSTM(w[:3], **SEQUENCE),
                layers.LSTM(w[3:], **SEQUENCE, go_backwards=True),
                "sum",
            )
        ],
        lambda: [stock.Bidirectional(stock.LSTM(3, return_sequences=True), merge_mode="sum")],
    ),
    "two directions": (
        lambda *w: [layers.LSTM(LSTMWeights.from_keras([*w]), **SEQUENCE)],
        lambda: [stock.Bidirectional(stock.LSTM(3, return_sequences=True))],
    ),
    "functions": (
        lambda: [layers.LeakyReLU(0.1), layers.ELU(0.5), layers.ReLU(2.0), layers.Softmax()],
        lambda: [stock.LeakyReLU(0.1), stock.ELU(0.5), stock.ReLU(2.0), stock.Softmax()],
    ),
    "prelu": (lambda a: [layers.PReLU(a)], lambda: [stock.PReLU(shared_axes=[1])]),
    "pooling": (
        lambda: [layers.MaxPooling1D(2), layers.AveragePooling1D(3, 1, "same")],
        lambda: [stock.MaxPooling1D(2), stock.AveragePooling1D(3, 1, "same")],
    ),
    "mean": (
        lambda: [layers.GlobalAveragePooling1D(), layers.RepeatVector(2), layers.GLU()],
        lambda: [stock.GlobalAveragePooling1D(), stock.RepeatVector(2), stock.Activation("glu")],
    ),
    "steps": (
        lambda: [layers.ZeroPadding1D((1, 2)), layers.Cropping1D(1), layers.UpSampling1D(3)],
        lambda: [stock.ZeroPadding1D((1, 2)), stock.Cropping1D(1), stock.UpSampling1D(3)],
    ),
    "distributed": (
        lambda k, b: [layers.TimeDistributed([layers.Dense(k, b), layers.Activation("selu")])],
        lambda: [
            stock.TimeDistributed(stock.Dense(3)),
            stock.TimeDistributed(stock.Activation("selu")),
        ],
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_the_file_is_that_of_keras(kind: str, rng: np.random.Generator) -> None:
    chain, made = CASES[kind]
    model = keras.Sequential([keras.Input((None, C)), *made()])
    x = rng.normal(size=(2, T, C)).astype("float32")
    same(lambda *w: [layers.Input((None, C)), *chain(*w)], model, x, rng)


def test_fixed_steps(rng: np.random.Generator) -> None:
    model = keras.Sequential(
        [
            keras.Input((T, C)),
            *(stock.Permute((2, 1)), stock.Reshape((2, 2 * T)), stock.Flatten(), stock.Dense(2)),
        ]
    )
    same(
        lambda k, b: [
            layers.Input((T, C)),
            *(layers.Permute((2, 1)), layers.Reshape((2, 2 * T)), layers.Flatten()),
            layers.Dense(k, b),
        ],
        model,
        rng.normal(size=(2, T, C)).astype("float32"),
        rng,
    )


def test_embedding(rng: np.random.Generator) -> None:
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            *(stock.Embedding(ROWS, 3, mask_zero=True), stock.LSTM(2), stock.Dense(2, "softmax")),
        ]
    )
    same(
        lambda table, *w: [
            layers.Embedding(table, mask_zero=True),
            *(layers.LSTM(w[:3]), layers.Dense(*w[3:], "softmax")),
        ],
        model,
        rng.integers(0, 3, (4, T)),
        rng,
    )


MERGES = {
    "Add": lambda a, b: a + b,
    "Subtract": lambda a, b: a - b,
    "Multiply": lambda a, b: a * b,
    "Average": lambda a, b: (a + b) / 2,
    "Maximum": np.maximum,
    "Minimum": np.minimum,
    "Concatenate": lambda a, b: np.concatenate([a, b], axis=-1),
}


def test_merging(rng: np.random.Generator) -> None:
    """Names of a dictionary are those of a call. A list and single values are the same."""
    x, y = layers.Input((None, C)), layers.Input((None, C))
    values = {name: getattr(layers, name)()(x, y) for name in MERGES}
    a, b = rng.normal(size=(2, 3, T, C)).astype("float32")
    got = Session.from_graph({"a": x, "b": y}, values)({"b": b, "a": a})
    assert {*got} == {*MERGES}
    for name, function in MERGES.items():
        np.testing.assert_array_equal(got[name], function(a, b), err_msg=name)
    listed = [getattr(layers, name)()([x, y]) for name in MERGES]
    for name, result in zip(MERGES, Session.from_graph((x, y), listed)((a, b)), strict=True):
        np.testing.assert_array_equal(result, got[name], err_msg=name)


def test_layers_that_keras_does_not_have(rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, T, C)).astype("float32")
    padded = Session.from_layers([layers.Input((None, C)), layers.ReflectPadding1D((1, 3))])(x)
    np.testing.assert_array_equal(padded, np.pad(x, [(0, 0), (1, 3), (0, 0)], "reflect"))
    got = Session.from_layers([layers.Input((None, C)), layers.Magnitude()])(x)
    # one rounding of the root, and those of two squares
    np.testing.assert_allclose(got, np.hypot(x[..., :2], x[..., 2:]), rtol=1e-6)


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn"])
def test_stacks_and_states(kind: str, rng: np.random.Generator) -> None:
    """The states of a first half are the initial states of the second."""
    cls, weights = {
        "lstm": (layers.LSTM, LSTMWeights),
        "gru": (layers.GRU, GRUWeights),
        "rnn": (layers.SimpleRNN, RNNWeights),
    }[kind]
    gates = {"lstm": 4, "gru": 3, "rnn": 1}[kind]
    state_dict = {
        f"{name}_l{layer}": rng.normal(size=(gates * 3, *shape), scale=0.5)
        for layer in range(2)
        for name, shape in (
            ("weight_ih", (3 if layer else C,)),
            ("weight_hh", (3,)),
            *(("bias_ih", ()), ("bias_hh", ())),
        )
    }
    stack = weights.from_torch(state_dict)
    first, second = layers.Input((None, C)), layers.Input((None, C))
    layer = cls(stack, return_sequences=True, return_state=True)
    y, *states = layer(first)
    z, *final = layer(second, initial_state=states)
    assert len(states) == len(final) == (4 if kind == "lstm" else 2)
    x = rng.normal(size=(2, 2 * T, C)).astype("float32")
    got = Session.from_graph([first, second], [y, z, *final])([x[:, :T], x[:, T:]])
    whole = Session.from_layers([cls(stack, return_sequences=True, return_state=True)])(x)
    np.testing.assert_array_equal(np.concatenate(got[:2], axis=1), whole[0])
    for a, b in zip(got[2:], whole[1:], strict=True):
        np.testing.assert_array_equal(a, b)


def test_streams(rng: np.random.Generator) -> None:
    chain = [
        layers.Conv1D(rng.normal(size=(3, C, 5)), None, padding="causal", activation="relu"),
        layers.LSTM([rng.normal(size=(5, 12)), rng.normal(size=(3, 12)), np.zeros(12)], name="l"),
    ]
    session = Session.from_layers(chain)
    x = rng.normal(size=(2, T, C)).astype("float32")
    stream = session.stream(2)
    for step in range(T):
        y = stream(x[:, step])
    np.testing.assert_array_equal(y, session(x))
    backwards = Session.from_layers([layers.Input((None, C)), layers.ZeroPadding1D(name="me")])
    assert not backwards.can_stream
    with pytest.raises(ValueError, match=r"a layer needs the whole sequence: layer [0-9]+, me"):
        backwards.stream()


ZEROS = [np.zeros((C, 12)), np.zeros((3, 12)), np.zeros(12)]
ERRORS: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    r"kernel must have the shape \[any, any\]. Received: \(3,\)": (
        lambda: layers.Dense(np.zeros(3)),
        ValueError,
    ),
    r"bias must have the shape \[2\]": (
        lambda: layers.Dense(np.zeros((3, 2)), np.zeros(3)),
        ValueError,
    ),
    r"activation must be one of .*'mish'.*Received: activation='sine'": (
        lambda: layers.Activation("sine"),
        ValueError,
    ),
    r"padding must be one of .*Received: padding='full'": (
        lambda: layers.Conv1D(np.zeros((2, 3, 4)), padding="full"),
        ValueError,
    ),
    r"strides must be an integer. Received: strides=1.5": (
        lambda: layers.Conv1D(np.zeros((2, 3, 4)), strides=1.5),
        TypeError,
    ),
    r"kernel must be an array of real numbers": (
        lambda: layers.Dense(np.zeros((2, 2), complex)),
        TypeError,
    ),
    r"weights must be LSTMWeights": (lambda: layers.LSTM(3), TypeError),
    r"must have 2 initial states. Received: 1": (
        lambda: layers.LSTM(ZEROS)(layers.Input((None, C)), initial_state=layers.Input((3,))),
        ValueError,
    ),
    r"must be called on values": (
        lambda: layers.Dense(np.zeros((3, 2)))(np.zeros((1, 3))),
        TypeError,
    ),
    r"layers must be a list of layers of tf_lstm_ops.inference.layers.*\['LSTM'\]": (
        lambda: Session.from_layers([stock.LSTM(3)]),
        TypeError,
    ),
    r"layers, one or more. Received: an empty list": (lambda: Session.from_layers([]), TypeError),
    r"size of the input is not known from first": (
        lambda: Session.from_layers([layers.Activation("relu", name="first")]),
        ValueError,
    ),
    r"layer 1, b \(.*last axis of its input is 2, must be 3": (
        lambda: Session.from_layers(
            [layers.Dense(np.zeros((3, 2))), layers.Dense(np.zeros((3, 2)), name="b")]
        ),
        ValueError,
    ),
    r"layer 1, b \(.*its input has 2 axes, must have 3": (
        lambda: Session.from_layers([layers.LSTM(ZEROS), layers.GlobalMaxPooling1D(name="b")]),
        ValueError,
    ),
    r"layer e must have an Input of dtype 'int32'": (
        lambda: Session.from_layers(
            [layers.Input((None,)), layers.Embedding(np.zeros((3, 2)), name="e")]
        ),
        ValueError,
    ),
    r"depends on the input 'second', which is not among the inputs": (
        lambda: Session.from_graph(
            layers.Input((None, C)),
            layers.Dense(np.zeros((C, 2)))(layers.Input((None, C), name="second")),
        ),
        ValueError,
    ),
    r"inputs must be a value of layers": (lambda: Session.from_graph([], []), TypeError),
    r"threads must be from 1": (
        lambda: Session.from_layers([layers.LSTM(ZEROS)], threads=0),
        ValueError,
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_errors(message: str) -> None:
    make, kind = ERRORS[message]
    with pytest.raises(kind, match=message):
        make()


PROGRAM = """
import numpy as np
from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import LSTMWeights
weights = LSTMWeights.from_torch(dict(np.load("lstm.npz")))
chain = [layers.Embedding(np.load("table.npy")), layers.LSTM(weights, return_sequences=True)]
np.save("y.npy", Session.from_layers(chain)(np.load("x.npy")))
assert not any(sys.modules.get(name) for name in ("tensorflow", "keras"))
"""


def test_without_tensorflow(rng: np.random.Generator, tmp_path: Path) -> None:
    state_dict = {
        "weight_ih_l0": rng.normal(size=(12, 4)).astype("float32"),
        "weight_hh_l0": rng.normal(size=(12, 3)).astype("float32"),
    }
    table, x = rng.normal(size=(9, 4)).astype("float32"), rng.integers(0, 9, (2, 5))
    np.savez(tmp_path / "lstm.npz", **state_dict)
    np.save(tmp_path / "table.npy", table)
    np.save(tmp_path / "x.npy", x)
    start = f"import sys; sys.path.insert(0, {str(Path(tf_lstm_ops.__file__).parents[1])!r})\n"
    command = [sys.executable, "-c", start + HOOK + PROGRAM]
    process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert process.returncode == 0, process.stderr
    lstm = layers.LSTM(LSTMWeights.from_torch(state_dict), return_sequences=True)
    want = Session.from_layers([layers.Embedding(table), lstm])(x)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), want)


@pytest.mark.parametrize(("count", "version"), [(1024, 1), (1025, 2)])
def test_many_layers(count: int, version: int) -> None:
    """Version 1 of the file has at most 1,024 layers."""
    session = Session.from_layers([layers.Input((None, 2)), *[layers.Activation("relu")] * count])
    assert session._opened.content[8] == version
    assert session(np.array([[[-1.0, 3.0]]])).tolist() == [[[0.0, 3.0]]]


def test_an_input_of_a_number_of_steps_streams() -> None:
    """Its size is that of a call; no layer needs all steps."""
    rng = np.random.default_rng(0)
    lstm = layers.LSTM([rng.normal(size=size).astype("float32") for size in ((3, 16), (4, 16))])
    session = Session.from_layers([layers.Input((7, 3)), lstm])
    x = rng.normal(size=(2, 7, 3)).astype("float32")
    np.testing.assert_array_equal(session.stream(2)(x), session(x))


def test_a_group_for_each_channel() -> None:
    """It is computed as the depthwise convolution that it is."""
    rng = np.random.default_rng(0)
    kernel, bias = rng.normal(size=(3, 1, 5)), rng.normal(size=5)
    grouped = layers.Conv1D(kernel, bias, 2, "causal", groups=5)
    depthwise = layers.DepthwiseConv1D(kernel.transpose(0, 2, 1), bias, 2, "causal")
    one, other = (Session.from_layers([each]) for each in (grouped, depthwise))
    assert one._opened.content.tobytes() == other._opened.content.tobytes()
