"""`tf-lstm-ops selftest` turns the kernels on if it passes on the device, and finds wrong ones."""

import shutil

import pytest

from devices import gate
from metal import build
from metal.test_suites import environment

pytestmark = pytest.mark.metal


@pytest.mark.parametrize("plugin", build.PLUGINS)
def test_it_passes_and_turns_the_kernels_on(tmp_path, plugins, kernels, plugin):
    machine = gate.Machine(tmp_path, environment(plugins[plugin], kernels), plain_ops=False)
    gate.check_selftest(machine)


@pytest.mark.slow  # compiles the kernels once more
def test_a_wrong_gate_order_is_caught(plugins, tmp_path):
    root = tmp_path / "checkout"
    shutil.copytree(build.ROOT / "cc", root / "cc")
    header = root / "cc" / "core" / "gate_order.h"
    right, wrong = "kOrderIFCO{{0, 2, 1, 3}}", "kOrderIFCO{{0, 1, 2, 3}}"
    assert right in header.read_text()
    header.write_text(header.read_text().replace(right, wrong))
    # One folder for all libraries of a process, so that it loads the fake frameworks once.
    plugin, folder = plugins["host_address"], tmp_path / "built"
    right_kernels = shutil.ignore_patterns("tf_lstm_ops_metal*")
    shutil.copytree(plugin.parent, folder, ignore=right_kernels)
    broken = build.build_kernels(folder, root)
    machine = gate.Machine(tmp_path, environment(folder / plugin.name, broken), plain_ops=False)
    found = gate.check_failing_selftest(machine)
    assert found["LSTMBlockCell"] == {"ok"}  # another gate order
    for op in ("CudnnRNNV3", "MPSGraphLSTM"):
        assert "FAILED" in found[op]
