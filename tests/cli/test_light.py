"""Help, the version and wrong usage come without the imports that take seconds."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

FULL = pytest.mark.full
HEAVY = {"tensorflow", "keras", "numpy", "h5py", "matplotlib"}
SCRIPT = str(Path(sysconfig.get_path("scripts"), "tf-lstm-ops"))
WRONG = (
    ["dance"],
    ["demo", "--epochs", "1"],
    ["doctor", "none.keras"],
    ["convert", "m.pt", "m.session"],
    ["selftest", "--loud"],
)


def imported(folder: Path, status: int, *arguments: str) -> set[str]:
    """The top-level modules that a process of the command line imports."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return set(re.findall(r"^import time: .*\| +([\w]+)$", done.stderr, re.MULTILINE))


@pytest.mark.parametrize("program", [("-m", "tf_lstm_ops"), (SCRIPT,)], ids=" ".join)
def test_help(tmp_path: Path, program: tuple[str, ...]) -> None:
    found = imported(tmp_path, 0, *program, "--help")
    assert "argparse" in found
    assert not found & HEAVY


@pytest.mark.parametrize("name", ["", "info", "doctor", "convert", "demo", "selftest"])
def test_help_of_a_command(tmp_path: Path, name: str) -> None:
    arguments = [name, "--help"] if name else ["--version"]
    assert not imported(tmp_path, 0, SCRIPT, *arguments) & HEAVY


def test_folders_of_the_package(tmp_path: Path) -> None:
    arguments = ["info", "--include-dir", "--library-dir"]
    assert not imported(tmp_path, 0, SCRIPT, *arguments) & HEAVY


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_usage(tmp_path: Path, arguments: list[str]) -> None:
    assert not imported(tmp_path, 2, SCRIPT, *arguments) & HEAVY


@pytest.mark.parametrize(
    ("command", "status"),
    [
        pytest.param("{} info 2>&-", 0, id="no stderr", marks=FULL),
        pytest.param(
            "{} info --all | true; exit ${{PIPESTATUS[0]}}", 1, id="closed pipe", marks=FULL
        ),
        pytest.param("{} --version <&- 2>&-", 0, id="no stdin"),
    ],
)
def test_streams_that_are_closed(tmp_path: Path, command: str, status: int) -> None:
    words = ["bash", "-c", command.format(SCRIPT)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == status
    assert "Error" not in done.stderr
    assert ("tf" in done.stdout) == (status == 0)
