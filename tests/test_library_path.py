"""Which native library is loaded."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tf_lstm_ops import _library

PROGRAM = """
from tf_lstm_ops import _library
_library.register()
maps = open("/proc/self/maps").read().split()
print(next(part for part in maps if part.endswith("/tf_lstm_ops.so")))
print(_library.is_built(), _library.gpu_path())
"""


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads Linux's /proc")
def test_the_variable_names_another_library(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_LSTM_OPS_LIBRARY", raising=False)
    own = _library.path()
    copy = tmp_path / "other" / "tf_lstm_ops.so"
    copy.parent.mkdir()
    shutil.copy(own, copy)
    monkeypatch.setenv("TF_LSTM_OPS_LIBRARY", str(copy))
    monkeypatch.setenv("TF_LSTM_OPS_GPU", "0")
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    path, state = result.stdout.splitlines()
    assert path == str(copy)
    # The library for GPUs stays that of the package.
    assert state == f"True {own.with_name('tf_lstm_ops_cuda.so')}"
    assert _library.path() == copy
