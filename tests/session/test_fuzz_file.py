"""Mutated files: the library opens them or reports an error, and reads nothing outside of them."""

import re
import subprocess
from pathlib import Path

import pytest

from session import graphs, layers, native_program
from session import session_file as f

pytestmark = native_program.glibc


def write_all(folder: Path, version: int) -> list[str]:
    """Writes small files of one version, which together have every kind of layer and weights."""
    if version == 1:
        return [str(native_program.write(folder, name)) for name in layers.CHAINS]
    return [
        str(native_program.write_graph(folder, name, weights))
        for name in graphs.GRAPHS
        for weights in f.WEIGHTS
    ]


def fuzz(program: Path, files: list[str], seed: int, count: int, mebibytes: int) -> tuple[int, int]:
    """How many mutated files were opened and computed."""
    numbers = [str(number) for number in (seed, 0, count, mebibytes)]
    done = subprocess.run([program, *numbers, *files], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"(\d+) opened (\d+) computed\n", done.stdout)
    assert found
    return int(found[1]), int(found[2])


@pytest.mark.full
@pytest.mark.parametrize("version", [1, 2])
def test_mutated_files(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, version: int
) -> None:
    """In little memory, so that a session of large sizes meets an error of an allocation."""
    count = 10_000
    program = native_program.build("fuzz_file.cc", tmp_path_factory)
    files = write_all(tmp_path, version)
    opened, computed = fuzz(program, files, seed=1, count=count, mebibytes=512)
    # About one in nine is valid. Were it almost none or all, the test would show little.
    assert count / 20 < computed <= opened < count / 3


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2])
def test_mutated_files_under_sanitizers(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, version: int
) -> None:
    count = 100_000
    program = native_program.build("fuzz_file.cc", tmp_path_factory, "address,undefined")
    # AddressSanitizer needs much address space.
    files = write_all(tmp_path, version)
    opened, computed = fuzz(program, files, seed=2, count=count, mebibytes=0)
    assert count / 20 < computed <= opened < count / 3
