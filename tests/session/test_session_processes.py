"""Sessions at the end of a process, in a forked child, and beside the ops of TensorFlow."""

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tf_lstm_ops
from session import layers, native_program
from tf_lstm_ops.inference import Session

# The installed package, not the source folder. TensorFlow is hidden, which saves its import.
START = f"""
import sys
sys.path.insert(0, {str(Path(tf_lstm_ops.__file__).parents[1])!r})
sys.modules["tensorflow"] = sys.modules["keras"] = None
import gc, os, threading
import numpy as np
from tf_lstm_ops.inference import Session
path = sys.argv[1]
"""
DAEMONS = """
session = Session.load(path, threads=2)
stream = session.stream(4)
x = np.ones((4, 2000, session.input_size), np.float32)
running = threading.Event()

def use(call):
    while True:
        running.set()
        call(x)

for call in (session, stream):
    threading.Thread(target=use, args=(call,), daemon=True).start()
    running.wait()
    running.clear()
"""
LEFT_OPEN = """
session = Session.load(path)
stream = session.stream()
stream(np.ones((1, session.input_size)))
sys.exit_kept = [stream, session]  # a module that is cleared late
cycle = [stream]
cycle.append(cycle)
del session
"""
FORKS = """
session = Session.load(path, threads=2)
x = np.ones((8, 20, session.input_size), np.float32)
stream = session.stream(8)
want, steps = session(x), stream(x)
for depth in range(3):
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        assert status == 0, (depth, status)
        break
    assert np.array_equal(session(x), want)
    stream.reset()
    assert np.array_equal(stream(x), steps)
    other = Session.load(path, threads=2)
    assert np.array_equal(other(x), want)
    del other
    gc.collect()
"""


def run(program: str, path: Path) -> None:
    # Python 3.12 warns of each fork beside threads.
    warnings = ["-W", "ignore:This process:DeprecationWarning"]
    command = [sys.executable, *warnings, "-c", START + program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("program", [DAEMONS, LEFT_OPEN], ids=["daemons", "left open"])
def test_exit(program: str, tmp_path: Path) -> None:
    """Threads may be in a call at exit. Their session must not be closed."""
    run(program, native_program.write(tmp_path, "lstm of 256"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_fork(tmp_path: Path) -> None:
    """Children of children use sessions that the parent opened, with the team of threads."""
    run(FORKS, native_program.write(tmp_path, "lstm of 256"))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_no_copies(copied, tmp_path: Path) -> None:
    """A copy would use the library's object when the original has closed it."""
    session = Session.load(native_program.write(tmp_path, "lstm"))
    with pytest.raises(TypeError, match=r"Session cannot be copied or pickled. Use Session\.save"):
        copied(session)
    with pytest.raises(TypeError, match="Stream cannot be copied or pickled"):
        copied(session.stream())


def test_beside_the_ops(tmp_path: Path, rng: np.random.Generator) -> None:
    """The two libraries have a team of threads each, and no symbol in common."""
    from concurrent.futures import ThreadPoolExecutor

    import tensorflow as tf

    session = Session.load(native_program.write(tmp_path, "lstm of 256"), threads=2)
    x = rng.normal(size=(16, 20, layers.INPUTS)).astype(np.float32)
    layer = tf_lstm_ops.keras.LSTM(256, return_sequences=True)
    wanted = session(x), layer(tf.constant(x)).numpy()
    with ThreadPoolExecutor(4) as pool:
        results = [
            pool.submit(lambda k=k: session(x) if k % 2 == 0 else layer(tf.constant(x)).numpy())
            for k in range(24)
        ]
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result.result(), wanted[k % 2])
