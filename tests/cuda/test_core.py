"""The comparison of tests/gpu with PyTorch on the fakes: the backend without TensorFlow."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cuda import build

pytestmark = [pytest.mark.cuda, pytest.mark.torch]
pytest.importorskip("torch", reason="PyTorch, which this compares with, is not installed")

GPU = build.ROOT / "tests" / "gpu"


@pytest.fixture(scope="module")
def core(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("core") / "core.so"
    subprocess.run([GPU / "build.sh", library], check=True)
    return library


@pytest.mark.parametrize("algorithms", [("op", "cudnn"), ("grid",), ("clusters",), ("steps",)])
def test_core_without_tensorflow(built, core, algorithms):
    done = subprocess.run(
        [sys.executable, GPU / "check.py", core, "--device", "cpu", "--algorithms", *algorithms],
        env={**os.environ, **build.environment(built)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all correct" in done.stdout and "WRONG" not in done.stdout
