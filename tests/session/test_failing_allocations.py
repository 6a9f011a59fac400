"""Each allocation of a session and of a stream fails in turn, as failing_allocations.cc lets it."""

import re
import subprocess
from pathlib import Path

import pytest

from session import graphs, native_program
from session import session_file as f

pytestmark = [native_program.glibc, pytest.mark.full]  # which compile a program

NAMES = [
    *("lstm", "lstm with a projection and peepholes", "gru, reset before", "layer norm lstm"),
    *("stack with dense", "masking, last step", "both, average", "two of both"),
    *("lstm of 256", "grus of 256"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native_program.build("failing_allocations.cc", tmp_path_factory)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_errors_of_allocations(program: Path, tmp_path: Path, name: str, threads: int) -> None:
    check(program, native_program.write(tmp_path, name), threads)


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("weights", f.WEIGHTS[1:])
@pytest.mark.parametrize("name", ["lstm of 256", "grus of 256"])
def test_errors_of_allocations_of_large_layers(
    program: Path, tmp_path: Path, name: str, weights: int, threads: int
) -> None:
    check(program, native_program.write(tmp_path, name, weights), threads)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("weights", f.WEIGHTS)
@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_errors_of_allocations_of_graphs(
    program: Path, tmp_path: Path, name: str, weights: int, threads: int
) -> None:
    check(program, native_program.write_graph(tmp_path, name, weights), threads)


def check(program: Path, path: Path, threads: int) -> None:
    command = [program, path, str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"(\d+) failed\n", done.stdout)
    assert found and int(found[1]) >= 10  # the session, its layers, the stream and their memory
