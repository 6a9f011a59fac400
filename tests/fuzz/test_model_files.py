"""Changed files of every kind, read in a process that a reader may end."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUICK = ("keras 1 h5", "keras 3", "checkpoint", "frozen graph", "torch", "rtneural", "session")
KERAS_2 = ("keras 2 h5", "keras 2 weights", "keras 2 keras", "keras 2 folder", "arrays of keras")


def run(kinds: tuple[str, ...], count: int) -> dict[str, int]:
    """The counts of a run, which must have no failure."""
    for package in ("torch", "safetensors", "tf_keras"):
        pytest.importorskip(package, reason="writes and computes files")
    command = [sys.executable, "-m", "tests.fuzz.models", "--calls", str(count), "--counts"]
    environment = {**os.environ, "FUZZ_KINDS": ",".join(kinds)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    return {name: int(n) for n, name in re.findall(r"^ *(\d+) (.+)$", done.stdout, re.MULTILINE)}


@pytest.mark.full
def test_a_few_hundred_files() -> None:
    counts = run(QUICK, 300)
    for kind in QUICK:
        # Were almost none or all of them refused, the test would show little.
        assert counts[kind] / 20 < counts[f"{kind}: accepted"] < counts[kind], kind


@pytest.mark.slow
@pytest.mark.parametrize("kinds", [QUICK, KERAS_2], ids=["quick", "keras 2"])
def test_many_files(kinds: tuple[str, ...]) -> None:
    run(kinds, int(os.environ.get("FUZZ_FILES", "5000")))
