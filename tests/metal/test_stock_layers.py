"""An import changes no stock layer for the worse on a machine with a PluggableDevice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from metal import build

pytestmark = pytest.mark.metal

PROGRAM = Path(__file__).with_name("stock_layers.py")


def run(*arguments: str) -> str:
    variables = {"TF_CPP_MIN_LOG_LEVEL": "3", "TF_LSTM_OPS_METAL_LIBRARY": ""}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("plugin", build.PLUGINS)
def test_stock_layers(tmp_path, plugins, plugin):
    """Eager, traced, predict and fit, on any device and on the CPU: the results are right, or the
    call has the error that it has without the package."""
    run("none", str(tmp_path))
    before, after = (
        json.loads(run(str(plugins[plugin]), str(tmp_path), *package).splitlines()[-1])
        for package in ((), ("own",))
    )
    print(before, after)
    assert "wrong" not in after.values(), after
    for call, outcome in after.items():
        assert outcome == "right" or before[call] != "right", (call, before[call], outcome)
