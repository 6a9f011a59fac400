"""matplotlib is needed for pictures only."""

import os
import subprocess
import sys

import pytest

# A process in which matplotlib cannot be imported, as where it is not installed.
PROGRAM = """
import sys
sys.modules["matplotlib"] = None
sys.argv[0] = "tf-lstm-ops"
from tf_lstm_ops.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def run(folder, *arguments):
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_info(tmp_path):
    result = run(tmp_path, "info")
    assert (result.returncode, result.stderr) == (0, "")
    assert "TensorFlow" in result.stdout


@pytest.mark.parametrize("command", ["demo", "bench"])
def test_what_draws_a_picture_says_how_to_install_it(tmp_path, command):
    """Before it measures or trains anything."""
    result = run(tmp_path, command)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("tf-lstm-ops: the picture needs matplotlib")
    assert result.stderr.endswith("\npip install 'matplotlib>=3.8'\n")
    assert list(tmp_path.iterdir()) == []
