"""Results and gradients of the layers have the same bits on any number of threads."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from processes import assert_bits_elsewhere, in_environments

SCRIPT = Path(__file__).with_name("bits.py")


@pytest.fixture(scope="module")
def bits() -> dict[str, np.ndarray]:
    return runpy.run_path(str(SCRIPT))["results"]()


@in_environments
def test_bits_in_another_process(bits, tmp_path, environment):
    assert_bits_elsewhere(SCRIPT, environment, bits, tmp_path)
