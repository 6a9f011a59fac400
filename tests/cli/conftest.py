"""The command line as a user runs it: in a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Runs ``python -m tf_lstm_ops ARGUMENTS``, in a new folder unless `cwd` names one."""

    def run(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ)
        environment.pop("TF_CPP_MIN_LOG_LEVEL", None)  # as a user's shell has it: unset
        return subprocess.run(
            [sys.executable, "-m", "tf_lstm_ops", *map(str, arguments)],
            cwd=cwd or tmp_path_factory.mktemp("command"),
            env=environment,
            capture_output=True,
            text=True,
        )

    return run
