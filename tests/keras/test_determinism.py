"""Results and gradients of the layers have the same bits on any number of threads."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from processes import ENVIRONMENTS, assert_bits_elsewhere

SCRIPT = Path(__file__).with_name("bits.py")


@pytest.fixture(scope="module")
def bits() -> dict[str, np.ndarray]:
    return runpy.run_path(str(SCRIPT))["results"]()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_bits_in_another_process(bits, tmp_path, environment):
    assert_bits_elsewhere(SCRIPT, environment, bits, tmp_path)
