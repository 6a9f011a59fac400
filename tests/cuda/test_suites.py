"""The dialects' own suites on the CUDA kernels and the fakes of CUDA's libraries, and errors that
they must notice."""

import pytest

from cuda import build
from devices import suites

pytestmark = pytest.mark.cuda

# test_cudnn.py tests the timing of algorithms; here it would run everything ten times. The
# tolerances are those of float, but TF32 has ten bits: the fake's has all (see test_persistent.py).
UNTIMED = {"TF_CUDNN_USE_AUTOTUNE": "0", "FAKE_FLOAT": "1"}
# cuDNN where it supports a layer, or the package's own kernels: all steps in one launch where they
# fit, or step by step. cuDNN supports Keras' layers without mask and dropout.
CUDNN = {"TF_LSTM_OPS_CUDA_PERSISTENT": "1"}
GRID = CUDNN | {"TF_LSTM_OPS_CUDA_CUDNN": "0"}
CLUSTERS = GRID | {"TF_LSTM_OPS_CUDA_PERSISTENT": "clusters"}
STEPS = GRID | {"TF_LSTM_OPS_CUDA_PERSISTENT": "0"}
RUNS = [
    *((suite, algorithm) for suite in suites.SUITES for algorithm in (GRID, CLUSTERS, STEPS)),
    ("keras", CUDNN),
    ("cudnn_rnn", CUDNN),
]


@pytest.mark.parametrize(("suite", "algorithm"), RUNS)
def test_suite(tmp_path, built, suite, algorithm):
    suites.check(suite, tmp_path, build.environment(built) | UNTIMED | algorithm)


@pytest.mark.parametrize(
    ("macro", "chosen"),
    [
        ("-Dtanhf=sinf", ("tests/block_cell/test_forward.py", "-k", "test_outputs and float32")),
        ("-Dexpf=sinf", ("tests/mpsgraph/test_gradients.py",)),
    ],
)
def test_wrong_device_code_is_noticed(tmp_path, built, macro, chosen):
    """The same device code, with a wrong function."""
    broken = {
        "TF_LSTM_OPS_CUDA_CACHE": str(tmp_path / "programs"),
        "FAKE_CXX": f"c++ {macro}",
    }
    environment = build.environment(built) | UNTIMED | broken
    outcome = suites.run(tmp_path, environment, *chosen, "--maxfail=1")
    assert outcome.returncode == 1, outcome.output[-10000:]
    assert "AssertionError" in outcome.output
