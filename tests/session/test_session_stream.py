"""Streams: steps and blocks, states, resets, arrays of other libraries, threads."""

import gc
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.inference import Session, Stream
from tf_lstm_ops.keras import GRU, LSTM

INPUTS = 6
KINDS = {
    "lstm": lambda: [LSTM(9, return_sequences=True)],
    "last output": lambda: [LSTM(9)],
    "projection": lambda: [LSTM(9, projection_size=4, use_peephole=True, return_sequences=True)],
    "norm": lambda: [LSTM(9, layer_normalization=True, return_sequences=True)],
    "gru": lambda: [GRU(9, return_sequences=True)],
    "reset before": lambda: [GRU(9, reset_after=False, return_sequences=True)],
    "chain": lambda: [
        LSTM(9, return_sequences=True),
        keras.layers.Dense(7, "relu"),
        GRU(8, return_sequences=True),
        keras.layers.Activation("softmax"),
    ],
    "dense": lambda: [keras.layers.Dense(3)],
}


def make(kind: str) -> Session:
    return Session(keras.Sequential([keras.Input((None, INPUTS)), *KINDS[kind]()]))


def numbers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_blocks_are_the_sequence(kind: str, batch: int, rng: np.random.Generator) -> None:
    session, x = make(kind), numbers(rng, batch, 40, INPUTS)
    stream = session.stream(batch)
    parts = [stream(x[:, t]) for t in range(5)]
    assert all(part.shape == (batch, session.output_size) for part in parts)
    got, start = np.stack(parts, axis=1), 5
    for steps in (1, 2, 7, 25):
        block = stream(x[:, start : start + steps])
        start += steps
        if session.returns_sequence:
            got = np.concatenate([got, block], axis=1)
        else:
            np.testing.assert_array_equal(block, session(x[:, :start]))
    if session.returns_sequence:
        np.testing.assert_array_equal(got, session(x))


def test_masking_in_a_stream(rng: np.random.Generator) -> None:
    session = Session(
        keras.Sequential(
            [
                keras.Input((None, INPUTS)),
                keras.layers.Masking(),
                LSTM(4, return_sequences=True),
                GRU(3, return_sequences=True, zero_output_for_mask=True),
            ]
        )
    )
    x = numbers(rng, 2, 12, INPUTS)
    x[rng.random((2, 12)) < 0.5] = 0
    for batch in (1, 2):
        stream = session.stream(batch)
        got = [stream(x[:batch, t]) for t in range(6)]
        got = np.concatenate([np.stack(got, axis=1), stream(x[:batch, 6:])], axis=1)
        np.testing.assert_array_equal(got, session(x[:batch]))


def test_large_steps_use_the_callers_arrays(rng: np.random.Generator) -> None:
    """Above 64 KiB nothing is copied."""
    layer = GRU(4, return_sequences=True)
    layer.build((None, None, 1500))
    session, x = Session([layer]), numbers(rng, 16, 3, 1500)
    stream = session.stream(16)
    out = np.empty((16, 4), "float32")
    got = [stream(x[:, t], out=out).copy() for t in range(3)]
    np.testing.assert_array_equal(np.stack(got, axis=1), session(x))


@pytest.mark.parametrize("batch", [1, 3])
def test_reset_of_rows(batch: int, rng: np.random.Generator) -> None:
    session, x = make("chain"), numbers(rng, batch, 8, INPUTS)
    stream, other = session.stream(batch), session.stream(batch)
    stream(x[:, :4])
    other(x[:, :4])
    want = other(x[:, 4:])
    stream.reset(rows=[0])
    got = stream(x[:, 4:])
    np.testing.assert_array_equal(got[0], session(x[:, 4:])[0])
    np.testing.assert_array_equal(got[1:], want[1:])
    stream.reset([])
    assert any(state.any() for state in stream.state)
    stream.reset()
    assert not any(state.any() for state in stream.state)
    np.testing.assert_array_equal(stream(x), session(x))


@pytest.mark.parametrize("batch", [1, 3])
def test_states_are_those_of_keras(batch: int, rng: np.random.Generator) -> None:
    layer = LSTM(9, projection_size=4, return_sequences=True, return_state=True)
    x, later = numbers(rng, batch, 5, INPUTS), numbers(rng, batch, 5, INPUTS)
    _, h, c = layer(x)
    want, *_ = layer(later, initial_state=[h, c])
    layer.return_state = False
    stream = Session([layer]).stream(batch)
    stream(x)
    for got, state in zip(stream.state, (h, c), strict=True):
        np.testing.assert_array_equal(got, state)
    kept = stream.state
    np.testing.assert_array_equal(stream(later), want)
    stream.set_state([state.astype("float64") for state in kept])
    np.testing.assert_array_equal(stream(later), want)
    assert not any(np.may_share_memory(a, b) for a, b in zip(kept, stream.state, strict=True))


def test_out_and_other_arrays(rng: np.random.Generator) -> None:
    session, x = make("lstm"), numbers(rng, 2, 5, INPUTS)
    want = session(x)
    out = np.empty_like(want)
    assert session(x, out=out) is out
    np.testing.assert_array_equal(out, want)
    for same in (x.astype("float64"), np.asfortranarray(x), tf.constant(x), x.tolist()):
        np.testing.assert_array_equal(session(same), want)
    assert session(np.ones((1, 2, INPUTS), bool)).shape == (1, 2, 9)
    for mask in (np.ones((2, 5)), np.ones((2, 5), "int64"), tf.ones((2, 5), tf.bool)):
        np.testing.assert_array_equal(session(x, mask), want)
    stream, out = session.stream(2), np.empty((2, 9), "float32")
    assert stream(x[:, 0].astype("float64"), out=out) is out
    np.testing.assert_array_equal(out, want[:, 0])
    np.testing.assert_array_equal(stream(x[:, 1].tolist()), want[:, 1])
    np.testing.assert_array_equal(stream(tf.constant(x[:, 2])), want[:, 2])
    block = np.empty((2, 2, 9), "float32")
    assert stream(x[:, 3:], out=block) is block
    np.testing.assert_array_equal(block, want[:, 3:])


class Exporter:
    """An array of another library."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class OnGpu(Exporter):
    def __dlpack__(self, **options: object) -> object:
        raise BufferError("on a GPU")


def test_dlpack(rng: np.random.Generator) -> None:
    session, x = make("lstm"), numbers(rng, 2, 5, INPUTS)
    np.testing.assert_array_equal(session(Exporter(x)), session(x))
    np.testing.assert_array_equal(session.stream(2)(Exporter(x)), session(x))
    with pytest.raises(ValueError, match=r"x must be an array on the CPU .* on a GPU"):
        session(OnGpu(x))


def test_many_threads_of_one_session(rng: np.random.Generator) -> None:
    session, inputs = make("chain"), [numbers(rng, 2, 30, INPUTS) for _ in range(16)]
    want = [session(x) for x in inputs]

    def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        stream = session.stream(2)
        return session(x), np.stack([stream(x[:, t]) for t in range(30)], axis=1)

    with ThreadPoolExecutor(8) as pool:
        for (whole, steps), right in zip(pool.map(both, inputs), want, strict=True):
            np.testing.assert_array_equal(whole, right)
            np.testing.assert_array_equal(steps, right)


def test_a_stream_in_use(rng: np.random.Generator) -> None:
    """A second thread gets an error in each function, and the stream is free after errors."""
    stream = make("lstm").stream()
    many = np.zeros((1, 1_000_000, INPUTS), "float32")

    def use() -> None:
        while True:
            try:
                stream(many)
                return
            except RuntimeError:  # the other thread was first
                pass

    for call in (
        lambda: stream(np.zeros((1, INPUTS))),
        stream.reset,
        lambda: stream.state,
        lambda: stream.set_state([np.zeros((1, 9))] * 2),
    ):
        refused = 0
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(use)
            while not running.done():
                try:
                    call()
                except RuntimeError as error:
                    assert str(error) == "another thread uses the stream"
                    refused += 1
        assert refused > 0 and running.result() is None
    with pytest.raises(ValueError, match="x must have the shape"):
        stream(np.zeros((1, 1)))
    assert stream(np.zeros((1, INPUTS))).shape == (1, 9)


def test_a_stream_keeps_its_session(rng: np.random.Generator) -> None:
    x = numbers(rng, 1, 3, INPUTS)
    session = make("lstm")
    want, stream = session(x), session.stream()
    del session
    gc.collect()
    np.testing.assert_array_equal(stream(x), want)
    assert isinstance(stream, Stream) and repr(stream).startswith(
        "Stream(batch=1, session=Session("
    )
