"""Stock GRUs on a TensorFlow without CUDA that has a PluggableDevice, as on a Mac.

Keras then passes its own gate order to CudnnRNNV3, of which this package has the only CPU kernel.
"""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("gru_order.py")


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the program says of each call, in a process that has a plugin's library."""
    plugin = tmp_path_factory.mktemp("plugin") / "plugin.so"
    source = 'extern "C" void SE_InitPlugin() {}'
    command = ["c++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(plugin)]
    subprocess.run(command, input=source, text=True, check=True)
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(plugin)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.full
@pytest.mark.parametrize(
    "line",
    [
        "gru: right",
        "lstm with a plugin: right",
        "gru with a plugin: refused",
        "gradient of gru with a plugin: refused",
        "keras.layers.GRU with a plugin: right",
        "keras.layers.LSTM with a plugin: right",
        "gru with a plugin and CUDA: right",
    ],
)
def test_call(printed, line):
    assert line in printed
