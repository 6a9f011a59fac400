"""Whether another process, in another environment, computes the same bits."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ENVIRONMENTS = {
    "one thread": {"TF_NUM_INTRAOP_THREADS": "1"},
    "two threads": {"TF_NUM_INTRAOP_THREADS": "2"},
    "seven threads": {"TF_NUM_INTRAOP_THREADS": "7"},
    # glibc fills new memory with one byte and freed memory with its complement.
    "poisoned memory": {"MALLOC_PERTURB_": "1"},
}

# A test runs in each. Each starts TensorFlow anew, so none is part of the default run, for which
# core/test_bits.py compares numbers of threads in one process.
in_environments = pytest.mark.parametrize(
    "environment",
    [
        pytest.param("seven threads", marks=pytest.mark.full),
        pytest.param("one thread", marks=pytest.mark.slow),
        pytest.param("two threads", marks=pytest.mark.slow),
        pytest.param("poisoned memory", marks=pytest.mark.slow),
    ],
)


def assert_bits_elsewhere(
    script: Path, environment: str, bits: dict[str, np.ndarray], folder: Path
) -> None:
    """Runs `script FILE`, which writes its results there, in one of ENVIRONMENTS."""
    if environment == "poisoned memory" and platform.libc_ver()[0] != "glibc":
        pytest.skip("MALLOC_PERTURB_ is glibc's")
    path = folder / "bits.npz"
    run = subprocess.run(
        [sys.executable, script, path],
        env={**os.environ, **ENVIRONMENTS[environment]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    with np.load(path) as other:
        assert set(other) == set(bits)
        different = [key for key in bits if bits[key].tobytes() != other[key].tobytes()]
    assert not different
