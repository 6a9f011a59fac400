"""docs/guide/tutorial.md: its commands and its program in C, with the files of its blocks."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT, blocks, run_examples

PAGE = (ROOT / "docs" / "guide" / "tutorial.md").read_text(encoding="utf-8")
COMMANDS = [block for block in blocks(PAGE, "sh") if "speaker" in block]


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="the commands are for Linux")
def test_commands_of_the_tutorial(tmp_path: Path) -> None:
    """The program in C finds the speaker."""
    run_examples(PAGE, tmp_path)
    [program] = blocks(PAGE, "c")
    (tmp_path / "speaker.c").write_text(program, encoding="utf-8")
    [shown] = blocks(PAGE, "text")
    said = ""
    for block in COMMANDS:
        done = shell(block, tmp_path)
        if "doctor" in block:
            assert without_numbers(done.stdout).startswith(without_numbers(shown))
        assert done.returncode in (0, 1), done.stderr  # 1: doctor has found something to change
        said = done.stdout
    probabilities = [float(line) for line in said.splitlines()]
    assert len(probabilities) == 9 and probabilities.index(max(probabilities)) == 0
    [convert] = re.findall(r"`(tf-lstm-ops convert [^`]+)`", PAGE)
    assert shell(convert, tmp_path).returncode == 0
    assert (tmp_path / "fast.keras").exists()


def without_numbers(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?", "#", text)


def shell(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs commands with this Python's `tf-lstm-ops`."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    program = tools / "tf-lstm-ops"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tf_lstm_ops "$@"\n')
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    command = ["sh", "-c", commands]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
