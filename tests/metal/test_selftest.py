"""`tf-lstm-ops selftest` passes on the device, and fails with wrong kernels."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metal import build

pytestmark = pytest.mark.metal

PROGRAM = Path(__file__).with_name("selftest_program.py")


def selftest(plugin: Path, kernels: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAM), str(plugin)],
        env={**os.environ, "TF_LSTM_OPS_METAL_LIBRARY": str(kernels)},
        capture_output=True,
        text=True,
    )


def verdicts(printed: str) -> dict[str, set[str]]:
    """For each op the last column of its rows."""
    found: dict[str, set[str]] = {}
    for line in printed.partition("\n\n")[0].splitlines()[1:]:
        found.setdefault(line.split()[0], set()).add(line.split()[-1])
    return found


@pytest.mark.parametrize("plugin", build.PLUGINS)
def test_all_cases_agree(plugins, kernels, plugin):
    result = selftest(plugins[plugin], kernels)
    assert result.returncode == 0, result.stdout + result.stderr
    assert set().union(*verdicts(result.stdout).values()) == {"ok"}
    assert re.search(r"\n(\d+) of \1 cases agree with the CPU.\n$", result.stdout)


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
    result = selftest(folder / plugin.name, build.build_kernels(folder, root))
    assert result.returncode == 1, result.stderr
    found = verdicts(result.stdout)
    assert found["LSTMBlockCell"] == {"ok"}  # another gate order
    for op in ("BlockLSTMV2", "CudnnRNNV3", "KerasLSTM", "MPSGraphLSTM"):
        assert "FAILED" in found[op]
    assert "Please report the table above together with these lines:" in result.stdout
