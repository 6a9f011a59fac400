"""Help, version and wrong usage."""

import subprocess
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest

from tf_lstm_ops import __main__


def test_without_arguments_prints_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main([]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("usage: tf-lstm-ops")
    assert "info" in printed
    assert "demo" in printed


def test_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        __main__.main(["--version"])
    assert exit_.value.code == 0
    assert capsys.readouterr().out.split() == ["tf-lstm-ops", metadata.version("tf_lstm_ops")]


def test_unknown_command_names_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        __main__.main(["dance"])
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert "dance" in error
    assert "info" in error
    assert "demo" in error


@pytest.mark.full
def test_console_script_is_installed() -> None:
    script = Path(sysconfig.get_path("scripts"), "tf-lstm-ops")
    result = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["tf-lstm-ops", metadata.version("tf_lstm_ops")]
