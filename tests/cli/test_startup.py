"""The start of the command line: TensorFlow's log is hidden unless something fails."""

import os
import sys

import pytest

from tf_lstm_ops import _program
from tf_lstm_ops.cli import startup

NOISE = b"I0000 00:00:00.000000 port.cc] something about the processor\n"


@pytest.fixture(autouse=True)
def no_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "")  # remembered, and so restored after the test
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")


def test_log_is_hidden_and_stderr_comes_back(capfd: pytest.CaptureFixture[str]) -> None:
    with startup._quiet_tensorflow():
        os.write(2, NOISE)
    os.write(2, b"after")
    assert capfd.readouterr().err == "after"
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"


def test_a_failed_import_shows_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ImportError), startup._quiet_tensorflow():
        os.write(2, NOISE)
        raise ImportError
    assert capfd.readouterr().err == NOISE.decode()


def test_level_set_by_the_user_wins(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    with startup._quiet_tensorflow():
        os.write(2, NOISE)
    assert capfd.readouterr().err == NOISE.decode()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"


def test_backend_of_keras_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the package is loaded."""
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    found = []
    monkeypatch.setattr(startup._start, "load", lambda: found.append(os.environ["KERAS_BACKEND"]))
    startup.load()
    assert found == ["tensorflow"]


SCRIPT = "/usr/bin/tf-lstm-ops"


@pytest.mark.parametrize(
    ("argv", "orig_argv", "expected"),
    [
        ([SCRIPT, "demo"], ["python", SCRIPT, "demo"], True),
        (["-m", "demo"], ["python", "-mtf_lstm_ops", "demo"], True),
        (["-m", "demo"], ["python", "-m", "tf_lstm_ops.__main__", "demo"], True),
        (["tf-lstm-ops.exe"], ["python", "tf-lstm-ops.exe"], True),
        (["-m", "info"], ["python", "-m", "tf_lstm_ops", "info"], True),
        (["-m"], ["python", "-X", "dev", "-m", "tf_lstm_ops"], True),
        (["-m", "tests"], ["python", "-m", "pytest", "tests"], False),
        # Programs that have the name as an argument, or a name of their own that resembles it.
        (["-m", "tf_lstm_ops"], ["python", "-m", "pytest", "tf_lstm_ops"], False),
        (["-m", "GPU:0"], ["python", "-m", "tf_lstm_ops.selftest.worker", "GPU:0"], False),
        (["tf-lstm-ops.py"], ["python", "tf-lstm-ops.py"], False),
        (["train.py"], ["python", "train.py"], False),
        # A child that multiprocessing spawns from the command line has the parent's argv.
        ([SCRIPT, "demo"], ["python", "-c", "spawn_main()", "--multiprocessing-fork"], False),
        ([""], ["python"], False),
        ([], [], False),
    ],
)
def test_users_program_is_told_from_the_command_line(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], orig_argv: list[str], expected: bool
) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", orig_argv)
    assert _program._is_program() is expected
