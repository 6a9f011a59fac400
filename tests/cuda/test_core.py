"""tests/gpu's comparison with PyTorch, on the stand-ins: what lies below TensorFlow, without it."""

import os
import subprocess
import sys

import pytest

from cuda import build

pytestmark = [pytest.mark.cuda, pytest.mark.torch]
pytest.importorskip("torch", reason="PyTorch, which this compares with, is not installed")

GPU = build.ROOT / "tests" / "gpu"


def test_core_without_tensorflow(tmp_path, built):
    core = tmp_path / "core.so"
    subprocess.run([GPU / "build.sh", core], check=True)
    done = subprocess.run(
        [sys.executable, GPU / "check.py", core, "--device", "cpu"],
        env={**os.environ, **build.environment(built)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all right" in done.stdout and "WRONG" not in done.stdout
