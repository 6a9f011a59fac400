"""The C library of sessions against the float64 oracle. Nothing here needs TensorFlow."""

import concurrent.futures
import threading

import numpy as np
import pytest

from session import c_library as c
from session import chain, layers
from session import session_file as f

# float32 against float64: sums of up to 150 terms of order 1, and at most 75 recurrent steps,
# whose errors shrink from step to step.
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}
TIME = 9


@pytest.fixture(scope="module")
def library():
    return c.load(c.path())


@pytest.fixture
def rng():
    return np.random.default_rng(54)


def inputs(rng, batch, time):
    """Some steps have the mask value of the chains with masking."""
    x = rng.standard_normal((batch, time, layers.INPUTS)).astype(np.float32)
    x[rng.random((batch, time)) < 0.3] = 0.25
    return x


def mask_of(kind, batch=3, time=TIME):
    if kind == "none":
        return None
    mask = np.ones((batch, time), bool)
    mask[1, -4:], mask[2] = False, False
    if kind == "left":
        mask = mask[:, ::-1]
    if kind == "gaps":
        mask[:, 2:5:2] = False
    return mask


@pytest.mark.parametrize("masked", ["none", "right", "left", "gaps"])
@pytest.mark.parametrize("name", layers.CHAINS)
def test_whole_sequences(library, rng, name, masked):
    description = layers.chain(name, rng)
    x, mask = inputs(rng, 3, TIME), mask_of(masked)
    want, _ = chain.run(description, x, mask)
    got = c.Session(library, f.write(description))(x, mask)
    np.testing.assert_allclose(got, want, **TOLERANCE)


@pytest.mark.parametrize("function", f.FUNCTIONS)
def test_functions(library, rng, function):
    x = np.linspace(-6, 6, 8 * 25, dtype=np.float32).reshape(2, 4, 25)
    got = c.Session(library, f.write([layers.activation(function, 25)]))(x)
    want = chain.activate(function, x.astype(np.float64))
    # A few roundings of float32.
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=2e-7)


def test_softmax_of_large_numbers(library):
    x = np.array([[[1000, 1001, -1000, 1000]]], np.float32)  # exp(1000) is no float32
    got = c.Session(library, f.write([layers.activation("softmax", 4)]))(x)
    np.testing.assert_allclose(got, chain.activate("softmax", x.astype(np.float64)), rtol=1e-6)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", layers.FORWARD_CHAINS)
def test_streams_have_the_bits_of_whole_sequences(library, rng, name, batch):
    description, blocks = layers.chain(name, rng), [1, 40, 2, 32]
    x = inputs(rng, batch, sum(blocks))
    session = c.Session(library, f.write(description))
    want, states = chain.run(description, x)
    whole, stream = session(x), c.Stream(session, batch)
    pieces = [stream(piece) for piece in np.split(x, np.cumsum(blocks)[:-1], axis=1)]
    got = np.concatenate(pieces, axis=1) if session.info.returns_sequence else pieces[-1]
    np.testing.assert_allclose(whole, want, **TOLERANCE)
    np.testing.assert_array_equal(got, whole)
    flat = np.concatenate([state.ravel() for state in states] or [np.zeros(0)])
    np.testing.assert_allclose(stream.state, flat, **TOLERANCE)


def test_more_threads_have_the_same_bits(library, rng):
    data = f.write([layers.recurrent(rng, f.LSTM, layers.INPUTS, 200)])
    x = inputs(rng, 4, 20)
    one, two = (c.Session(library, data, threads)(x) for threads in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_many_threads_use_one_session(library, rng):
    session = c.Session(library, f.write(layers.chain("stack with dense", rng)))
    all_x = [inputs(rng, batch, 1 + 3 * batch) for batch in range(1, 7)]
    want = [session(x) for x in all_x]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            for got, expected in zip(pool.map(session, all_x), want, strict=True):
                np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("name", ["masking", "stack with dense"])
def test_a_step_depends_on_its_own_row_only(library, rng, name):
    """Bit for bit, also in streams, where rows are masked at different steps."""
    session = c.Session(library, f.write(layers.chain(name, rng)))
    x = inputs(rng, 3, 30)
    together, stream = c.Stream(session, 3)(x), c.Stream(session)
    for row in range(3):
        stream.reset()
        np.testing.assert_array_equal(stream(x[row : row + 1])[0], together[row])


@pytest.mark.parametrize("name", ["lstm", "backwards", "both"])
def test_lengths(library, rng, name):
    """They have the bits of the mask, in both functions; wrong ones are refused."""
    session = c.Session(library, f.write(layers.chain(name, rng)))
    x = rng.standard_normal((4, 6, layers.INPUTS), np.float32)
    lengths = np.array([6, 0, 2, 5], np.int32)
    want = session(x, np.arange(6) < lengths[:, None])
    y = np.full_like(want, np.nan)

    def run(given):
        pointers = x.ctypes.data, given.ctypes.data, y.ctypes.data
        c.call(library, "session_run_lengths", session.handle, 4, 6, *pointers, y.size)

    run(lengths)
    np.testing.assert_array_equal(y, want)
    given = c.as_struct(x, lengths)
    given.mask_type = 1
    y[:] = np.nan
    c.call_arrays(library, "session_run_arrays", session.handle, [given], [y])
    np.testing.assert_array_equal(y, want)
    for wrong in (-1, 7):
        with pytest.raises(
            c.CallError, match=rf"length \[2\] of input 0 is {wrong}, must be from 0"
        ):
            run(np.array([6, 0, wrong, 5], np.int32))
    given.mask_type = 2
    with pytest.raises(c.CallError, match=r"inputs\[0\].mask_type is 2, must be 0 or 1"):
        c.call_arrays(library, "session_run_arrays", session.handle, [given], [y])


def test_reset(library, rng):
    session = c.Session(library, f.write(layers.chain("stack with dense", rng)))
    x = inputs(rng, 3, 4)
    stream = c.Stream(session, 3)
    first, second = stream(x), stream(x)
    assert (first != second).any(axis=1).all()
    stream.reset()
    assert not stream.state.any()
    np.testing.assert_array_equal(stream(x), first)
    stream.reset([2, 0])
    third = stream(x)
    np.testing.assert_array_equal(third[[0, 2]], first[[0, 2]])
    np.testing.assert_array_equal(third[1], second[1])


def test_states(library, rng):
    session = c.Session(library, f.write(layers.chain("stack with dense", rng)))
    x, stream = inputs(rng, 2, 6), c.Stream(session, 2)
    assert session.info.state_size == 2 * 18 + 9 + 2 * 33
    stream(x)
    state = stream.state
    want = stream(x)
    other = c.Stream(session, 2)
    other.state = state
    np.testing.assert_array_equal(other.state, state)
    np.testing.assert_array_equal(other(x), want)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lstm with a projection", (5, 3, 10, 1, 1)),
        ("last step", (5, 7, 14, 0, 1)),
        ("both", (5, 14, 28, 1, 0)),
        ("both, sum", (5, 7, 14, 1, 0)),
        ("backwards", (5, 7, 14, 1, 0)),
        ("dense only", (5, 3, 0, 1, 1)),
    ],
)
def test_info(library, rng, name, expected):
    info = c.Session(library, f.write(layers.chain(name, rng)), threads=0).info
    fields = (info.input_size, info.output_size, info.state_size)
    assert (*fields, info.returns_sequence, info.can_stream) == expected
    assert info.threads == 1


@pytest.mark.parametrize("name", ["lstm", "last step", "stack with dense", "both, last step"])
def test_no_rows_and_no_steps(library, rng, name):
    """Without steps the last output is that of zero states, 0, through the layers behind."""
    description = layers.chain(name, rng)
    session = c.Session(library, f.write(description))
    assert session(inputs(rng, 0, 4)).size == 0
    y = session(inputs(rng, 2, 0))
    if name == "stack with dense":
        want, _ = chain.run(description[5:], np.zeros((2, 33)))
        np.testing.assert_allclose(y, want, **TOLERANCE)
    else:
        assert not y.any()


def test_two_threads_may_not_use_one_stream(library, rng):
    session = c.Session(library, f.write([layers.recurrent(rng, f.LSTM, layers.INPUTS, 64)]))
    stream, x, done = c.Stream(session), inputs(rng, 1, 5000), threading.Event()

    def use() -> int:
        """The number of calls that failed."""
        failed = 0
        for _ in range(1000):
            try:
                stream(x)
            except c.CallError as error:
                assert error.code == c.FAILED_PRECONDITION
                assert error.text == "another thread uses the stream"
                failed += 1
            if failed:
                done.set()
            if done.is_set():
                break
        return failed

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(lambda _: use(), range(2))) > 0
    stream.reset()  # the stream is free again


def test_a_file_is_mapped(library, rng, tmp_path):
    data = f.write(layers.chain("lstm", rng))
    path, x = tmp_path / "ein Modell ✓.session", inputs(rng, 2, 3)
    path.write_bytes(data)
    session = c.Session(library, path)
    np.testing.assert_array_equal(session(x), c.Session(library, data)(x))
