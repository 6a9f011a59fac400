"""Many threads use one session, under ThreadSanitizer too."""

import subprocess
from pathlib import Path

import pytest

from session import native_program


def use(program: Path, path: Path, threads: int) -> int:
    """How many calls found the shared stream in use."""
    command = [program, path, str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    count, word = done.stdout.split()
    assert word == "refused"
    return int(count)


NAMES = ["stack with dense", "lstm of 256"]
GRAPHS = ["stream of convolutions", "stream of words"]


@pytest.mark.full
@native_program.glibc
@pytest.mark.parametrize(
    "sanitizers", ["", pytest.param("thread", marks=pytest.mark.slow)], ids=["plain", "thread"]
)
def test_many_threads_use_one_session(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, sanitizers: str
) -> None:
    program = native_program.build("thread_use.cc", tmp_path_factory, sanitizers)
    paths = [native_program.write(tmp_path, name) for name in NAMES]
    paths += [native_program.write_graph(tmp_path, name) for name in GRAPHS]
    for path in paths:
        # The calls of six threads on one stream do not all happen to run one after another.
        # Where other processes leave little time, they may.
        assert any(use(program, path, threads) for _ in range(10) for threads in (1, 2))
