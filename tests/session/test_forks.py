"""Forks while other threads use sessions and streams, in C and in Python."""

import subprocess
import sys
from pathlib import Path

import pytest

from session import native_program
from session.test_session_processes import START

pytestmark = native_program.glibc

FORKS = """
import signal
threads, forks = int(sys.argv[2]), int(sys.argv[3])
session = Session.load(path, threads=threads)
x = np.ones((2, 3, session.input_size), np.float32)
quiet, busy = session.stream(2), session.stream(2)
want = session(x)
over = threading.Event()

def use(call):
    while not over.is_set():
        call(x)

users = [threading.Thread(target=use, args=(call,)) for call in (session, session, busy)]
for user in users:
    user.start()
for number in range(forks):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        assert np.array_equal(session(x), want)
        assert np.array_equal(quiet(x), want)
        try:
            busy.reset()
            assert np.array_equal(busy(x), want)
        except RuntimeError as error:
            assert "another thread uses the stream" in str(error)
        other = Session.load(path, threads=threads)
        assert np.array_equal(other.stream(2)(x), want)
        del other
        del session, quiet, busy, users
        gc.collect()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0, (number, status)
over.set()
for user in users:
    user.join()
"""


def run(*command: object) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("name", ["lstm", "lstm of 256"])
@pytest.mark.parametrize("threads", [1, 2])
def test_in_c(
    name: str, threads: int, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    program = native_program.build("fork_during_calls.cc", tmp_path_factory)
    run(program, native_program.write(tmp_path, name), threads, 100)


@pytest.mark.full
@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("threads", [1, 2])
def test_in_python(threads: int, tmp_path: Path) -> None:
    path = native_program.write(tmp_path, "lstm")
    # Python 3.12 warns of each fork beside threads.
    warnings = ["-W", "ignore:This process:DeprecationWarning"]
    run(sys.executable, *warnings, "-c", START + FORKS, path, threads, 30)
