"""LastStep and FirstStep: their values, their stream, and what is folded into other layers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from session import c_library as c
from session import graphs
from session import session_file as f
from tf_lstm_ops.inference import Session, layers

C, H, B, T = 3, 5, 4, 6
Chain = Callable[[np.random.Generator], list[layers.Layer]]


def lstm(rng: np.random.Generator, inputs: int = C, **options: Any) -> layers.LSTM:
    weights = [rng.standard_normal(size) for size in ((inputs, 4 * H), (H, 4 * H), 4 * H)]
    return layers.LSTM(weights, return_sequences=True, **options)


def dense(rng: np.random.Generator, inputs: int = H, **options: Any) -> layers.Dense:
    return layers.Dense(rng.standard_normal((inputs, 4)), rng.standard_normal(4), **options)


def draw(rng: np.random.Generator, steps: int = T) -> np.ndarray:
    return rng.standard_normal((B, steps, C)).astype(np.float32)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("kind", "step"), [(layers.LastStep, -1), (layers.FirstStep, 0)])
def test_values(kind: Any, step: int, keepdims: bool, rng: np.random.Generator) -> None:
    x = draw(rng)
    session = Session.from_graph(v := layers.Input((None, C)), kind(keepdims=keepdims)(v))
    want = x[:, step, None] if keepdims else x[:, step]
    np.testing.assert_array_equal(session(x), want)
    assert not session(x[:, :0]).any() and session(x[:, :0]).shape == want.shape
    assert session(x[:0]).shape == (0, *want.shape[1:])
    windows = rng.standard_normal((2, T, 7, C)).astype(np.float32)
    v = layers.Input((None, None, C))
    session = Session.from_graph(v, layers.TimeDistributed(kind(keepdims=keepdims))(v))
    np.testing.assert_array_equal(
        session(windows), windows[:, :, step, None] if keepdims else windows[:, :, step]
    )


def test_stream(rng: np.random.Generator) -> None:
    """Each call gives its last step."""
    v, x = layers.Input((None, C)), draw(rng)
    stream = Session.from_graph(v, layers.LastStep()(v)).stream(B)
    for k in range(T):
        np.testing.assert_array_equal(stream(x[:, k]), x[:, k])
    np.testing.assert_array_equal(stream(x), x[:, -1])
    assert not Session.from_graph(v, layers.FirstStep()(v)).can_stream


# By name: a chain, which a LastStep follows, and the number of layers in the file with it.
FOLDED: dict[str, tuple[Chain, int]] = {
    "lstm": (lambda r: [lstm(r)], 1),
    "zero output": (lambda r: [lstm(r, zero_output_for_mask=True)], 1),
    "dense": (lambda r: [lstm(r), dense(r)], 2),
    "many": (
        lambda r: [
            *(lstm(r), layers.LayerNormalization(H), layers.Activation("tanh"), dense(r)),
            layers.BatchNormalization(mean=np.ones(4), variance=np.ones(4)),
            *(layers.GLU(), layers.Softmax()),
        ],
        6,  # the batch normalisation is part of the dense layer
    ),
    "gru": (
        lambda r: [
            layers.GRU(
                [r.standard_normal(s) for s in ((C, 3 * H), (H, 3 * H), (2, 3 * H))],
                return_sequences=True,
            )
        ],
        1,
    ),
    "convolution": (lambda r: [layers.Conv1D(r.standard_normal((2, C, H))), dense(r)], 3),
    "backwards": (lambda r: [lstm(r, go_backwards=True)], 2),
    "both": (
        lambda r: [
            layers.Bidirectional(*(lstm(r, go_backwards=b) for b in (False, True))),
            dense(r, 10),
        ],
        3,
    ),
    "prelu": (lambda r: [lstm(r), layers.PReLU(np.full(H, 0.3))], 3),
    "distributed": (lambda r: [lstm(r), layers.TimeDistributed(dense(r))], 3),
}


@pytest.mark.parametrize("name", FOLDED)
def test_folding(name: str, rng: np.random.Generator) -> None:
    """The bits of the last step of the whole sequence, with and without a mask."""
    chain, count = FOLDED[name]
    made = chain(rng)
    session = Session.from_layers([*made, layers.LastStep()])
    assert f"layers={count}," in repr(session)
    x, sequence = draw(rng), Session.from_layers(made)
    mask = np.arange(T) < rng.integers(1, T + 1, (B, 1))
    for given in (None, mask):
        np.testing.assert_array_equal(session(x, given), sequence(x, given)[:, -1])
    if session.can_stream:
        stream = session.stream(B)
        for k in range(T):
            np.testing.assert_array_equal(stream(x[:, k]), session(x[:, : k + 1]))


def test_what_others_read_stays(rng: np.random.Generator) -> None:
    """The sequence, the dense layer in front of a second LastStep, states and keepdims."""
    x, v = draw(rng), layers.Input((None, C))
    y = lstm(rng)(v)
    z = dense(rng)(y)
    last = layers.LastStep()
    outputs = [z, last(z), last(y), layers.LastStep(keepdims=True)(y)]
    session = Session.from_graph(v, outputs)
    assert "layers=5," in repr(session)
    got = session(x)
    sequence = Session.from_graph(v, [y, z])(x)
    np.testing.assert_array_equal(got[0], sequence[1])
    np.testing.assert_array_equal(got[1], sequence[1][:, -1])
    np.testing.assert_array_equal(got[2], sequence[0][:, -1])
    np.testing.assert_array_equal(got[3], sequence[0][:, -1:])


def test_states_stay(rng: np.random.Generator) -> None:
    """A recurrent layer that starts from states, and returns its own."""
    v, x = layers.Input((None, C)), draw(rng)
    y, h, c = lstm(rng, return_state=True)(v)
    z, *states = lstm(rng, H, return_state=True)(y, h, c)
    session = Session.from_graph(v, [layers.LastStep()(z), *states])
    assert "layers=2," in repr(session)
    got, want = session(x), Session.from_graph(v, [z, *states])(x)
    np.testing.assert_array_equal(got[0], want[0][:, -1])
    for one, other in zip(got[1:], want[1:], strict=True):
        np.testing.assert_array_equal(one, other)


def test_only_an_average_has_a_mask(rng: np.random.Generator) -> None:
    for mode in (0, 2, 3):
        b = graphs.Builder(rng, graphs.FLOATS)
        y = b.plain(f.GLOBAL_POOLING, 0, b.mask(), ints=[mode, 0])
        with pytest.raises(c.CallError, match="only an average has a mask"):
            c.Session(c.load(c.path()), f.write_graph(b.graph(y)))
