"""The dialects' own suites on a device "GPU" in host memory; see on_device.py.

Each runs in a process of its own: a device cannot be taken out again.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Suite(NamedTuple):
    files: tuple[str, ...]  # those about results and derivatives
    ops: set[str]  # that must have run on the device


SUITES = {
    "block_cell": Suite(
        ("forward", "gradients", "seq_len", "modes", "second_order", "empty"),
        {
            *("LSTMBlockCell", "BlockLSTM", "BlockLSTMV2"),
            *("LSTMBlockCellGrad", "BlockLSTMGrad", "BlockLSTMGradV2"),
            *("LSTMBlockCellFullGrad", "BlockLSTMFullGrad"),
        },
    ),
    "cudnn_rnn": Suite(
        ("forward", "gradients", "dropout", "modes", "layout", "second_order", "empty"),
        {
            *("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"),
            *("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"),
        },
    ),
    "mpsgraph": Suite(
        ("forward", "gradients", "modes", "weights", "second_order", "empty"),
        {"MPSGraphLSTM", "MPSGraphLSTMGradients"},
    ),
    "keras": Suite(
        (
            "parity",
            "masks",
            "gradients",
            "peephole_and_clip",
            "mixed_precision",
            "dropout",
            "empty",
        ),
        {"KerasLSTM", "KerasLSTMGrad"},
    ),
}


# Files about calls that run on the CPU, or as plain ops, with CUDA.
DROPOUT = {("cudnn_rnn", "dropout"), ("keras", "dropout")}

# The ops of each suite that Metal has: a layer is a call of CudnnRNNV3.
STACK = {"CudnnRNNV3", "CudnnRNNBackpropV3"}
ON_METAL = {
    "block_cell": {"LSTMBlockCell", "LSTMBlockCellGrad", "LSTMBlockCellFullGrad"},
    "cudnn_rnn": STACK,
    "mpsgraph": {"MPSGraphLSTM", "MPSGraphLSTMGradients"},
    "keras": STACK,
}

OPTIONS = ("-n0", "-q", "-s", "-p", "no:cacheprovider", "-m", "not slow")


class Outcome(NamedTuple):
    returncode: int
    output: str
    calls: dict[str, int]  # of each op on the device

    @property
    def passed(self) -> int:
        found = re.search(r"(\d+) passed", self.output)
        return int(found[1]) if found else 0


def run(folder: Path, environment: dict[str, str], *arguments: str) -> Outcome:
    """pytest with these arguments, in a process with these variables besides its own."""
    report = folder / "report.json"
    done = subprocess.run(
        # Uncaptured: what native code writes to stderr is part of the outcome.
        [sys.executable, "-m", "pytest", *OPTIONS, *arguments],
        cwd=ROOT,
        env={**os.environ, "TF_LSTM_OPS_TEST_REPORT": str(report), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    calls = json.loads(report.read_text()) if report.exists() else {}
    return Outcome(done.returncode, done.stdout, calls)


def check(suite: str, folder: Path, environment: dict[str, str], has_cuda: bool = False) -> Outcome:
    """Runs a suite: all must pass, its ops with kernels must have run on the device, and with Metal
    no others."""
    names = [n for n in SUITES[suite].files if not has_cuda or (suite, n) not in DROPOUT]
    files = [f"tests/{suite}/test_{name}.py" for name in names]
    outcome = run(folder, environment, *files)
    print(f"{suite}: {outcome.passed} passed, calls: {outcome.calls}")
    assert outcome.returncode == 0, outcome.output[-10000:]
    called = {op.removeprefix("TfLstmOps>") for op in outcome.calls}
    wanted = SUITES[suite].ops if has_cuda else ON_METAL[suite]
    assert wanted <= called and (has_cuda or called <= wanted)
    return outcome
