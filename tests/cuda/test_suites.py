"""The dialects' own suites with the CUDA kernels and stand-ins for CUDA's libraries, and what they
would notice."""

import pytest

from cuda import build
from devices import suites

pytestmark = pytest.mark.cuda

# test_cudnn.py has the timing of algorithms; here it would run all ten times. The tolerances are
# those of float, and TF32 has ten bits: here the stand-in's has all (see test_persistent.py).
UNTIMED = {"TF_CUDNN_USE_AUTOTUNE": "0", "STAND_IN_FLOAT": "1"}
# cuDNN where it serves, or our own kernels: all steps in one launch where they can be, or step by
# step. Of Keras' layers cuDNN takes what has neither mask nor dropout.
CUDNN = {"TF_LSTM_OPS_CUDA_PERSISTENT": "1"}
AT_ONCE = CUDNN | {"TF_LSTM_OPS_CUDA_CUDNN": "0"}
CLUSTERS = AT_ONCE | {"TF_LSTM_OPS_CUDA_PERSISTENT": "clusters"}
BY_STEP = AT_ONCE | {"TF_LSTM_OPS_CUDA_PERSISTENT": "0"}
WAYS = [
    *((suite, way) for suite in suites.SUITES for way in (AT_ONCE, CLUSTERS, BY_STEP)),
    ("keras", CUDNN),
    ("cudnn_rnn", CUDNN),
]


@pytest.mark.parametrize(("suite", "way"), WAYS)
def test_suite(tmp_path, built, suite, way):
    suites.check(suite, tmp_path, build.environment(built) | UNTIMED | way)


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
    environment = build.environment(built) | UNTIMED | broken
    outcome = suites.run(tmp_path, environment, *chosen, "--maxfail=1")
    assert outcome.returncode == 1, outcome.output[-10000:]
    assert "AssertionError" in outcome.output
