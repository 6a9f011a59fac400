"""An interrupt ends the command line with one line and the exit status 130, without a traceback."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import keras
import pytest

INTERRUPTED = b"tf-lstm-ops: interrupted\r\n"

# The command line as `python -m` runs it, with an interrupt when Keras is imported.
WHILE_IMPORTING = """
import runpy, signal, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == "keras":
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Finder)
sys.argv = ["tf-lstm-ops", "info"]
sys.orig_argv = ["python", *sys.argv]
runpy.run_module("tf_lstm_ops", run_name="__main__")
"""


def heed_interrupts() -> None:
    """A background job of a shell starts with interrupts ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.full
def test_doctor_at_work(tmp_path: Path) -> None:
    """SIGINT after the first line of progress, which doctor writes to terminals only."""
    model = keras.Sequential([keras.Input((5, 3)), keras.layers.LSTM(4)])
    model.save(tmp_path / "model.keras")
    terminal, stderr = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tf_lstm_ops", "doctor", tmp_path / "model.keras"],
        stdout=subprocess.PIPE,
        stderr=stderr,
        preexec_fn=heed_interrupts,
    )
    os.close(stderr)
    written = b""
    while b"tries the export" not in written:
        written += os.read(terminal, 4096)
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    while chunk := read_rest(terminal):
        written += chunk
    os.close(terminal)
    assert process.returncode == 130
    assert printed == b""
    assert b"Traceback" not in written
    assert written.endswith(b"\r" + INTERRUPTED)


def read_rest(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux' end of a terminal that no process has open
        return b""


@pytest.mark.full
def test_while_tensorflow_is_imported() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"}
    done = subprocess.run(
        [sys.executable, "-c", WHILE_IMPORTING],
        env=environment,
        capture_output=True,
        preexec_fn=heed_interrupts,
    )
    assert done.returncode == 130
    assert (done.stdout, done.stderr) == (b"", INTERRUPTED.replace(b"\r", b""))
