"""Kernels for Metal whose self-test has not passed on this machine are never used. `tf-lstm-ops
selftest` turns them on if it passes on the device, and finds wrong ones."""

import shutil
from pathlib import Path

import pytest

from devices import gate
from metal import build
from metal.test_suites import environment

pytestmark = pytest.mark.metal


@pytest.fixture(params=build.PLUGINS)
def machine(
    request: pytest.FixtureRequest, tmp_path: Path, plugins: dict[str, Path], kernels: Path
) -> gate.Machine:
    device = environment(plugins[request.param], kernels)
    return gate.Machine(tmp_path, device, plain_ops=False)


def test_all_states_of_the_record(machine):
    gate.check_states(machine)


def test_the_variable_overrides_the_record(machine):
    gate.check_variable(machine)


def test_errors_are_those_of_the_kernels(machine):
    gate.check_errors(machine)


def test_a_self_test_that_passes_turns_the_kernels_on(machine):
    gate.check_selftest(machine)


@pytest.mark.slow  # compiles the kernels once more
def test_a_self_test_finds_a_wrong_gate_order(plugins, tmp_path):
    # One folder for all libraries of a process, so that it loads the fake frameworks once.
    plugin, folder = plugins["host_address"], tmp_path / "built"
    shutil.copytree(plugin.parent, folder, ignore=shutil.ignore_patterns("tf_lstm_ops_metal*"))
    right, wrong = "kOrderIFCO{{0, 2, 1, 3}}", "kOrderIFCO{{0, 1, 2, 3}}"
    broken = build.build_broken_kernels(folder, tmp_path / "checkout", right, wrong)
    machine = gate.Machine(tmp_path, environment(folder / plugin.name, broken), plain_ops=False)
    found = gate.check_failing_selftest(machine)
    assert found["LSTMBlockCell"] == {"ok"}  # another gate order
    for op in ("CudnnRNNV3", "MPSGraphLSTM"):
        assert "FAILED" in found[op]
