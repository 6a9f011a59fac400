"""Kernels for CUDA whose self-test has not passed on this machine are never used."""

from pathlib import Path

import pytest

from cuda import build
from devices import gate

pytestmark = pytest.mark.cuda


@pytest.fixture
def machine(tmp_path: Path, built: Path) -> gate.Machine:
    return gate.Machine(tmp_path, build.environment(built), plain_ops=True)


def test_all_states_of_the_record(machine):
    gate.check_states(machine)


def test_the_variable_overrides_the_record(machine):
    gate.check_variable(machine)


def test_errors_are_those_of_the_kernels(machine):
    gate.check_errors(machine)


def test_a_kernel_broken_on_purpose_is_not_used(machine):
    broken = {"FAKE_CXX": "c++ -Dtanhf=sinf"}
    used = gate.assert_on(machine, "forced", TF_LSTM_OPS_GPU="1", **broken)
    for name in ("layer_without_gpu_kernel", "cudnn_rnn"):  # computed by others
        assert used.pop(name) < gate.TOLERANCE
    assert min(used.values()) > 100 * gate.TOLERANCE  # the kernel is wrong
    gate.assert_off(machine, "never run", "their self-test has not run", **broken)
