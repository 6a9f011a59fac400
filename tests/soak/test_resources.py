"""Calls without enough threads or memory, in forked processes, and interrupted ones: each in a
process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the limits are Linux's"),
    pytest.mark.slow,  # each starts TensorFlow twice or more
]
PROGRAM = str(Path(__file__).with_name("programs.py"))


def run(name: str, *options: str) -> list[str]:
    """The lines that the program prints before its last."""
    environment = {k: v for k, v in os.environ.items() if k != "TF_NUM_INTRAOP_THREADS"}
    command = [sys.executable, PROGRAM, name, *options]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600)
    *lines, last = result.stdout.splitlines() or [""]
    assert result.returncode == 0 and last == "done", result.stdout + result.stderr[-4000:]
    return lines


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="changes the user")
def test_no_more_threads():
    """The same bits on the calling thread alone."""
    assert run("no_threads") == ["1 result"]


def test_no_memory_for_an_output():
    assert run("no_memory") == ["refused True"]


def test_fork_during_a_call():
    assert run("fork_during_call") == []


def test_interrupt_during_a_call():
    assert run("interrupt") == []
