"""The dialects' own suites on the device, with either plugin, and what they would notice.

Each runs in a process of its own: a plugin cannot be unloaded.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from metal import build

pytestmark = pytest.mark.metal


class Suite(NamedTuple):
    files: tuple[str, ...]  # those about results and derivatives
    ops: set[str]  # that must have run on the device


SUITES = {
    "block_cell": Suite(
        ("forward", "gradients", "seq_len", "modes", "second_order"),
        {
            *("LSTMBlockCell", "BlockLSTM", "BlockLSTMV2"),
            *("LSTMBlockCellGrad", "BlockLSTMGrad", "BlockLSTMGradV2"),
            *("LSTMBlockCellFullGrad", "BlockLSTMFullGrad"),
        },
    ),
    "cudnn_rnn": Suite(
        ("forward", "gradients", "dropout", "modes", "layout", "second_order"),
        {
            *("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"),
            *("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"),
            *("CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2"),
            *("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2"),
            "CudnnRNNDropoutMask",
        },
    ),
    "mpsgraph": Suite(
        ("forward", "gradients", "modes", "weights", "second_order"),
        {"MPSGraphLSTM", "MPSGraphLSTMGradients"},
    ),
    "keras": Suite(
        ("parity", "masks", "gradients", "peephole_and_clip", "mixed_precision", "dropout"),
        {"KerasLSTM", "KerasLSTMGrad", "KerasGRU", "KerasGRUGrad"},
    ),
}


class Outcome(NamedTuple):
    returncode: int
    output: str
    calls: dict[str, int]  # of each op on the device

    @property
    def passed(self) -> int:
        found = re.search(r"(\d+) passed", self.output)
        return int(found[1]) if found else 0


def run(folder: Path, plugin: Path, kernels: Path, *arguments: str, **environment: str) -> Outcome:
    report = folder / "report.json"
    variables = {
        "TF_LSTM_OPS_TEST_PLUGIN": str(plugin),
        "TF_LSTM_OPS_TEST_REPORT": str(report),
        "TF_LSTM_OPS_METAL_LIBRARY": str(kernels),
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run(
        # Uncaptured: what native code writes to stderr is part of the outcome.
        [sys.executable, "-m", "pytest", "-n0", "-q", "-s", "-p", "no:cacheprovider", *arguments],
        cwd=build.ROOT,
        env={**os.environ, **variables, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    calls = json.loads(report.read_text()) if report.exists() else {}
    return Outcome(done.returncode, done.stdout, calls)


@pytest.fixture(params=build.PLUGINS)
def plugin(request: pytest.FixtureRequest, plugins: dict[str, Path]) -> Path:
    return plugins[request.param]


@pytest.mark.parametrize("suite", SUITES)
def test_suite(tmp_path, plugin, kernels, suite):
    files = [f"tests/{suite}/test_{name}.py" for name in SUITES[suite].files]
    outcome = run(tmp_path, plugin, kernels, *files)
    print(f"{plugin.stem} {suite}: {outcome.passed} passed, calls: {outcome.calls}")
    assert outcome.returncode == 0, outcome.output[-10000:]
    assert "autorelease called without pool" not in outcome.output
    called = {op.removeprefix("TfLstmOps>") for op in outcome.calls}
    assert SUITES[suite].ops - called == set()


def test_state_of_training_is_opaque(tmp_path, plugins, kernels):
    """Where Metal's zState is not the gates, all gradients are what they should be."""
    chosen = ("tests/mpsgraph/test_gradients.py", "-k", "test_many_sizes and float32")
    plugin = plugins["host_address"]
    outcome = run(tmp_path, plugin, kernels, *chosen, STAND_IN_OPAQUE_Z="1")
    assert outcome.returncode == 0, outcome.output[-10000:]
    assert outcome.calls["TfLstmOps>MPSGraphLSTMGradients"] > 0


def test_a_wrong_gate_order_is_noticed(tmp_path, plugins, kernels):
    shutil.copytree(build.ROOT / "cc", tmp_path / "cc")
    order = tmp_path / "cc" / "core" / "gate_order.h"
    right, wrong = "kOrderICFO{{0, 1, 2, 3}}", "kOrderICFO{{0, 2, 1, 3}}"
    assert right in order.read_text()
    order.write_text(order.read_text().replace(right, wrong))
    broken = build.build_kernels(tmp_path / "built", tmp_path)
    chosen = ("tests/block_cell/test_forward.py", "-k", "test_outputs and float32 and BlockCell")
    for library, returncode in ((kernels, 0), (broken, 1)):
        outcome = run(tmp_path, plugins["host_address"], library, *chosen)
        assert outcome.returncode == returncode, outcome.output[-10000:]
