"""TensorFlow's start-up log is hidden in the command line only, and never when something fails."""

import os
import sys

import pytest

from tf_lstm_ops.cli import startup

NOISE = b"I0000 00:00:00.000000 port.cc] something about the processor\n"


@pytest.fixture(autouse=True)
def as_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/bin/tf-lstm-ops", "info"])
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "")  # remembered, and so restored after the test
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")


def test_log_is_hidden_and_stderr_comes_back(capfd: pytest.CaptureFixture[str]) -> None:
    with startup.quiet_tensorflow():
        os.write(2, NOISE)
    os.write(2, b"after")
    assert capfd.readouterr().err == "after"
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"


def test_a_failed_import_shows_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ImportError), startup.quiet_tensorflow():
        os.write(2, NOISE)
        raise ImportError
    assert capfd.readouterr().err == NOISE.decode()


def test_level_set_by_the_user_wins(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    with startup.quiet_tensorflow():
        os.write(2, NOISE)
    assert capfd.readouterr().err == NOISE.decode()
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"


@pytest.mark.parametrize(("program", "expected"), [("tf-lstm-ops", "tensorflow"), ("x", "jax")])
def test_backend_of_keras_is_set_in_the_command_line(
    monkeypatch: pytest.MonkeyPatch, program: str, expected: str
) -> None:
    monkeypatch.setattr(sys, "argv", [program])
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    startup.use_tensorflow_backend()
    assert os.environ["KERAS_BACKEND"] == expected


@pytest.mark.parametrize(
    ("argv", "orig_argv", "expected"),
    [
        (["/usr/bin/tf-lstm-ops", "demo"], ["python", "/usr/bin/tf-lstm-ops", "demo"], True),
        (["-m", "info"], ["python", "-m", "tf_lstm_ops", "info"], True),
        (["-m", "tests"], ["python", "-m", "pytest", "tests"], False),
        (["train.py"], ["python", "train.py"], False),
    ],
)
def test_users_program_is_told_from_the_command_line(
    monkeypatch: pytest.MonkeyPatch, argv: list[str], orig_argv: list[str], expected: bool
) -> None:
    monkeypatch.setattr(sys, "argv", argv)
    monkeypatch.setattr(sys, "orig_argv", orig_argv)
    assert startup.is_program() is expected
