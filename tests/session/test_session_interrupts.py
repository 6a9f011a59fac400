"""Exceptions of signal handlers, such as KeyboardInterrupt, in calls of streams."""

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from session import layers, native_program
from tf_lstm_ops.inference import Session

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no timers that send signals")


class Interrupt(Exception):
    pass


@pytest.fixture
def timer():
    """Raises Interrupt in the main thread after a time; 0: not."""

    def handler(*_: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGALRM, handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("count", [2000, pytest.param(20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("steps", [(), (3,), (3000,)])  # the last one without arrays of the stream
def test_a_stream_is_free(count, steps, timer, tmp_path: Path, rng: np.random.Generator) -> None:
    """It may have computed the interrupted call or not. After a reset it is as a new one."""
    session = Session.load(native_program.write(tmp_path, "lstm"))
    x = rng.normal(size=(1, *steps, layers.INPUTS)).astype(np.float32)
    want = session.stream()(x)
    stream, out = session.stream(), np.empty_like(want)
    calls = (
        lambda: stream(x, out=out),
        lambda: stream(x),
        stream.reset,
        lambda: stream.set_state(stream.state),
    )
    if steps == (3000,):
        count //= 20
    interrupts = 0
    for k in range(count):
        try:
            timer(1e-5 + 1e-4 * rng.random())
            while True:
                calls[k % 4]()
        except Interrupt:
            interrupts += 1
            stream.reset()  # in the handler of the exception, too
        np.testing.assert_array_equal(stream(x), want)
        stream.reset()
    assert interrupts == count
