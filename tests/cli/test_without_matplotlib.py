"""matplotlib is needed for pictures only."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.full  # package/test_optional.py asks of the functions by default

# A process in which matplotlib cannot be imported, as where it is not installed. It runs `info`
# and `demo`, each in an empty folder, and prints what became of them.
PROGRAM = """
import contextlib, io, json, os, sys
sys.modules["matplotlib"] = None
sys.argv = ["tf-lstm-ops"]
sys.orig_argv = ["python", *sys.argv]
from tf_lstm_ops.__main__ import main
found = {}
for command in ("info", "demo"):
    os.mkdir(command)
    os.chdir(command)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([command])
    found[command] = (status, out.getvalue(), err.getvalue(), os.listdir())
    os.chdir("..")
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """By command: the exit status, what was printed, errors, and the files that were written."""
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path_factory.mktemp("commands"),
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (process.returncode, process.stderr) == (0, "")
    return json.loads(process.stdout)


def test_info(found):
    status, printed, errors, _ = found["info"]
    assert (status, errors) == (0, "")
    assert "TensorFlow" in printed


def test_what_draws_a_picture_says_how_to_install_it(found):
    """Before it measures or trains anything."""
    status, printed, errors, files = found["demo"]
    assert (status, printed) == (1, "")
    assert errors.startswith("tf-lstm-ops: the picture needs matplotlib")
    assert errors.endswith("\npip install 'matplotlib>=3.8'\n")
    assert files == []
