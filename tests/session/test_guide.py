"""docs/guide/serve_one_step.md: its C program, built by its commands, computes as Python does.

docs/test_pages.py runs its Python program.
"""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from pages import ROOT, blocks
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import LSTM

PAGE = (ROOT / "docs" / "guide" / "serve_one_step.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the commands are for Linux")


@pytest.fixture
def cc() -> list[str]:
    """The C compiler's command."""
    command = shlex.split(os.environ.get("CC", "cc"))
    path = shutil.which(command[0])
    if path is None:
        pytest.skip("no C compiler")
    return [path, *command[1:]]


def session(inputs: int) -> Session:
    """A session with the sizes of the page's: one output for each step."""
    layers = [LSTM(16, return_sequences=True), keras.layers.Dense(1)]
    return Session(keras.Sequential([keras.Input((None, inputs)), *layers]))


def run_commands(folder: Path, cc: list[str]) -> subprocess.CompletedProcess[str]:
    """Saves the page's program and runs the commands below it."""
    [program], [*_, commands] = blocks(PAGE, "c"), blocks(PAGE, "sh")
    (folder / "step.c").write_text(program)
    tools = folder / "tools"
    tools.mkdir()
    for name, command in ("python", [sys.executable]), ("cc", [*cc, "-Werror"]):
        (tools / name).write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        (tools / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    shell = ["sh", "-e", "-c", commands]
    return subprocess.run(shell, cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.full
def test_the_c_program_prints_the_outputs_of_python(cc: list[str], tmp_path: Path) -> None:
    """Bit for bit: nine digits tell all numbers of float32 apart."""
    served = session(inputs=1)
    served.save(tmp_path / "model.session")
    done = run_commands(tmp_path, cc)
    assert done.returncode == 0, done.stderr
    stream = served.stream()
    want = [stream(np.full((1, 1), t / 8, "float32"))[0, 0] for t in range(8)]
    np.testing.assert_array_equal(np.array(done.stdout.split(), np.float32), want)
    assert len(set(want)) == 8


@pytest.mark.full
def test_the_c_program_prints_the_error_of_the_page(cc: list[str], tmp_path: Path) -> None:
    session(inputs=2).save(tmp_path / "model.session")
    done = run_commands(tmp_path, cc)
    assert done.returncode == 1
    [error] = blocks(PAGE, "text")
    assert done.stderr.endswith(error)


@pytest.mark.full
def test_the_c_program_without_a_file(cc: list[str], tmp_path: Path) -> None:
    done = run_commands(tmp_path, cc)
    assert done.returncode == 1
    assert "the file cannot be read" in done.stderr and "model.session" in done.stderr
