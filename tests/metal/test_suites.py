"""The dialects' suites on the device with each plugin, and two checks of these suites.

Each runs in its own process, since a plugin cannot be unloaded.
"""

from pathlib import Path

import pytest

from devices import suites
from metal import build

pytestmark = pytest.mark.metal


def environment(plugin: Path, kernels: Path) -> dict[str, str]:
    return {
        "TF_LSTM_OPS_TEST_PLUGIN": str(plugin),
        "TF_LSTM_OPS_METAL_LIBRARY": str(kernels),
        "TF_LSTM_OPS_GPU": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


@pytest.fixture(params=build.PLUGINS)
def plugin(request: pytest.FixtureRequest, plugins: dict[str, Path]) -> Path:
    return plugins[request.param]


@pytest.mark.parametrize("suite", suites.SUITES)
def test_suite(tmp_path, plugin, kernels, suite):
    outcome = suites.check(suite, tmp_path, environment(plugin, kernels))
    assert "autorelease called without pool" not in outcome.output


def test_state_of_training_is_opaque(tmp_path, plugins, kernels):
    """The gradients are right if Metal's zState does not hold the gates."""
    chosen = ("tests/mpsgraph/test_gradients.py", "-k", "test_many_sizes and float32")
    opaque = environment(plugins["host_address"], kernels) | {"FAKE_OPAQUE_Z": "1"}
    outcome = suites.run(tmp_path, opaque, *chosen)
    assert outcome.returncode == 0, outcome.output[-10000:]
    assert outcome.calls["TfLstmOps>MPSGraphLSTMGradients"] > 0


def test_a_wrong_gate_order_is_noticed(tmp_path, plugins, kernels):
    right, wrong = "kOrderICFO{{0, 1, 2, 3}}", "kOrderICFO{{0, 2, 1, 3}}"
    broken = build.build_broken_kernels(tmp_path / "built", tmp_path, right, wrong)
    chosen = ("tests/block_cell/test_forward.py", "-k", "test_outputs and float32 and BlockCell")
    for library, returncode in ((kernels, 0), (broken, 1)):
        outcome = suites.run(tmp_path, environment(plugins["host_address"], library), *chosen)
        assert outcome.returncode == returncode, outcome.output[-10000:]
