"""core/sequence.h, which device code evaluates, against core/packed_sequence.h."""

import subprocess
from pathlib import Path

import pytest

from core.test_core import ROOT, compiler

SEQUENCE = "cc/core/sequence.h"


def run(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Compares them, with the sources in a folder before those of the repository."""
    program = folder / "sequence"
    sources = [
        Path(__file__).with_name("sequence_program.cc"),
        ROOT / "cc" / "core" / "packed_sequence.cc",
    ]
    command = [*compiler(), "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{root}/cc", f"-I{ROOT}/cc", *map(str, sources), "-o", str(program)]
    subprocess.run(command, check=True)
    return subprocess.run([str(program)], stdout=subprocess.PIPE, text=True)


@pytest.mark.full
def test_sequence_agrees_with_packed_sequence(tmp_path):
    done = run(ROOT, tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("length - 1 - s", "steps - 1 - s"),
        pytest.param(
            *("in_order_of_computation ? Row(b, s)", "in_order_of_computation ? Row(b, t)"),
            marks=pytest.mark.full,
        ),
        pytest.param(
            *("return t < Length(*b);", "return t <= Length(*b);"), marks=pytest.mark.full
        ),
    ],
)
def test_a_wrong_row_is_noticed(tmp_path, right, wrong):
    text = (ROOT / SEQUENCE).read_text()
    assert right in text
    changed = tmp_path / SEQUENCE
    changed.parent.mkdir(parents=True)
    changed.write_text(text.replace(right, wrong))
    assert run(tmp_path, tmp_path).returncode == 1
