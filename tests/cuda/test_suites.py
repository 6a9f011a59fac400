"""The dialects' own suites on a device "GPU" in host memory, with the CUDA kernels and stand-ins
for CUDA's libraries. Each runs in a process of its own: a device cannot be taken out again."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from cuda import build

pytestmark = pytest.mark.cuda


class Suite(NamedTuple):
    files: tuple[str, ...]  # those about results and first derivatives
    ops: set[str]  # that must have run on the device


SUITES = {
    "block_cell": Suite(
        ("forward", "gradients", "seq_len", "modes"),
        {
            *("LSTMBlockCell", "BlockLSTM", "BlockLSTMV2"),
            *("LSTMBlockCellGrad", "BlockLSTMGrad", "BlockLSTMGradV2"),
            *("LSTMBlockCellFullGrad", "BlockLSTMFullGrad"),
        },
    ),
    "cudnn_rnn": Suite(
        ("forward", "gradients", "dropout", "modes"),
        {
            *("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"),
            *("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"),
        },
    ),
    "mpsgraph": Suite(
        ("forward", "gradients", "modes"),
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


def run(folder: Path, built: Path, *arguments: str, **environment: str) -> Outcome:
    report = folder / "report.json"
    variables = {
        **build.environment(built),
        "TF_CUDNN_USE_AUTOTUNE": "0",  # test_cudnn.py has it; here it would run all ten times
        "TF_LSTM_OPS_TEST_REPORT": str(report),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=build.ROOT,
        env={**os.environ, **variables, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    calls = json.loads(report.read_text()) if report.exists() else {}
    return Outcome(done.returncode, done.stdout, calls)


@pytest.mark.parametrize("suite", SUITES)
def test_suite(tmp_path, built, suite):
    files = [f"tests/{suite}/test_{name}.py" for name in SUITES[suite].files]
    outcome = run(tmp_path, built, *files)
    print(f"{suite}: {outcome.passed} passed, calls: {outcome.calls}")
    assert outcome.returncode == 0, outcome.output[-10000:]
    called = {op.removeprefix("TfLstmOps>") for op in outcome.calls}
    assert SUITES[suite].ops - called == set()


@pytest.mark.parametrize(
    ("macro", "chosen"),
    [
        ("-Dtanhf=sinf", ("tests/block_cell/test_forward.py", "-k", "test_outputs and float32")),
        ("-Dexpf=sinf", ("tests/mpsgraph/test_gradients.py",)),
    ],
)
def test_wrong_device_code_is_noticed(tmp_path, built, macro, chosen):
    """The same device code, with a function that is another."""
    broken = {
        "TF_LSTM_OPS_CUDA_CACHE": str(tmp_path / "programs"),
        "STAND_IN_CXX": f"c++ {macro}",
    }
    outcome = run(tmp_path, built, *chosen, "--maxfail=1", **broken)
    assert outcome.returncode == 1, outcome.output[-10000:]
    assert "AssertionError" in outcome.output
