"""`tf-lstm-ops selftest` turns the kernels on if it passes on the device, and finds wrong ones."""

import pytest

from cuda import build
from cuda.test_device import check
from devices import gate

pytestmark = pytest.mark.cuda


def test_it_passes_and_turns_the_kernels_on(tmp_path, built):
    gate.check_selftest(gate.Machine(tmp_path, build.environment(built), plain_ops=True))


def test_each_kernel_is_checked(built):
    """A kernel that does nothing is found, and no op can run unchecked."""
    failing, unchecked = check("broken_kernels", built)
    assert failing.pop("") == 0
    assert len(failing) >= 13 and all(failing.values()), failing
    assert unchecked == []


def test_a_kernel_broken_on_purpose_is_caught_and_stays_off(tmp_path, built):
    broken = {"FAKE_CXX": "c++ -Dexpf=sinf"}
    environment = build.environment(built) | broken
    found = gate.check_failing_selftest(gate.Machine(tmp_path, environment, plain_ops=True))
    for op in ("LSTMBlockCell", "BlockLSTM", "KerasLSTM", "MPSGraphLSTM"):
        assert "FAILED" in found[op]
