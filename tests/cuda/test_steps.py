"""kernels/steps.h, which stands for core/packed_sequence.h on the device."""

import subprocess
from pathlib import Path

import pytest

from cuda import build

STEPS = "cc/core/sequence.h"


def run(root: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    program = folder / "steps"
    sources = [Path(__file__).with_name("steps_program.cc"), root / "cc" / "core" / "schedule.cc"]
    command = [*build.native.compiler(), "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"]
    command += [f"-I{root}/cc", f"-I{build.ROOT}/cc", *map(str, sources), "-o", str(program)]
    subprocess.run(command, check=True)
    return subprocess.run([str(program)], stdout=subprocess.PIPE, text=True)


def test_steps_are_the_schedules(tmp_path):
    done = run(build.ROOT, tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("length - 1 - s", "steps - 1 - s"),
        ("outputs_in_order ? Row(b, s)", "outputs_in_order ? Row(b, t)"),
    ],
)
def test_a_wrong_row_is_noticed(tmp_path, right, wrong):
    text = (build.ROOT / STEPS).read_text()
    assert right in text
    for path in (STEPS, "cc/core/packed_sequence.cc"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text((build.ROOT / path).read_text())
    (tmp_path / STEPS).write_text(text.replace(right, wrong))
    assert run(tmp_path, tmp_path).returncode == 1
