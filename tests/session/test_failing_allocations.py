"""Each allocation of a session and of a stream fails in turn, as failing_allocations.cc lets it."""

import re
import subprocess
from pathlib import Path

import pytest

from session import layers, native_program

pytestmark = native_program.glibc


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return native_program.build("failing_allocations.cc", tmp_path_factory.mktemp("failing"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", [*layers.CHAINS, *native_program.LARGE_CHAINS])
def test_errors_of_allocations(program: Path, tmp_path: Path, name: str, threads: int) -> None:
    command = [program, native_program.write(tmp_path, name), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"(\d+) failed\n", done.stdout)
    assert found and int(found[1]) >= 10  # the session, its layers, the stream and their memory
