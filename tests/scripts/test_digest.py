"""scripts/digest runs with the ops and layers as they are, and finds a difference."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

DIGEST = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "digest"


def digest(*arguments: str, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, DIGEST, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == status, done.stderr
    return done.stdout


@pytest.mark.full
def test_every_family_runs_and_a_difference_is_found(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "before.json"
    digest("--output", str(file), "--only", "float32 shape=T1 B1 I8 H17")
    written = json.loads(file.read_text())
    ops = {name.split()[0] for name in written["digests"]}
    assert {"LSTMBlockCell", "CudnnRNN", "MPSGraphLSTM", "KerasLSTM", "KerasGRU"} <= ops
    some = next(iter(written["digests"].values()))
    some[next(iter(some))] = "another digest"
    file.write_text(json.dumps(written))
    only = ("--only", "float32 shape=T1 B1 I8 H17")
    assert "\n1 differences from" in digest("--compare", str(file), *only, status=1)
