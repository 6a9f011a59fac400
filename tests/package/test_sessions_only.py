"""An installation with the library of sessions only, as TF_LSTM_OPS_SESSIONS_ONLY=1 builds it.

docs/test_installs.py builds one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tf_lstm_ops
from tf_lstm_ops.inference import native

SESSION = """
import numpy as np
from tf_lstm_ops.inference import Session, layers
arrays = [np.ones(shape, "f") for shape in ((3, 16), (4, 16), (16,))]
print(Session.from_layers([layers.LSTM(arrays)])(np.ones((1, 5, 3), "f")).shape)
"""
# The command line in a process of its own.
COMMAND_LINE = """
sys.argv[0] = "tf-lstm-ops"
sys.orig_argv = ["python", *sys.argv]
from tf_lstm_ops.__main__ import main
sys.exit(main())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, whose other libraries are missing."""
    folder = tmp_path_factory.mktemp("site")
    package = folder / "tf_lstm_ops"
    (package / "_lib").mkdir(parents=True)
    for file in Path(tf_lstm_ops.__file__).parent.iterdir():
        if file.name != "_lib":
            (package / file.name).symlink_to(file)
    (package / "_lib" / native.path().name).symlink_to(native.path())
    return folder


def run(site: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs it where the package is found in `site` first, with all other packages there are."""
    others = {k: v for k, v in os.environ.items() if not k.startswith("TF_LSTM_OPS_")}
    program = f"import sys; sys.path.insert(0, {str(site)!r})\n{program}"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**others, "TF_CPP_MIN_LOG_LEVEL": "2"},
        cwd=site,
        capture_output=True,
        text=True,
    )


def test_sessions(site: Path) -> None:
    done = run(site, SESSION)
    assert (done.returncode, done.stdout) == (0, "(1, 4)\n"), done.stderr


@pytest.mark.full  # imports TensorFlow
def test_tensorflow_beside_it(site: Path) -> None:
    """A program may import it for something else."""
    done = run(site, f"import tf_lstm_ops, tensorflow\nimport keras{SESSION}")
    assert (done.returncode, done.stdout) == (0, "(1, 4)\n"), done.stderr


@pytest.mark.parametrize("module", ["keras", "raw_ops", "stock"])
def test_layers_and_ops(site: Path, module: str) -> None:
    done = run(site, f"import tf_lstm_ops.{module}")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: this installation of tf_lstm_ops has sessions only")
    assert "TF_LSTM_OPS_SESSIONS_ONLY=1" in last
    assert "run 'pip install .' without that variable" in last


def test_info(site: Path) -> None:
    done = run(site, COMMAND_LINE, "info")
    assert (done.returncode, done.stderr) == (0, "")
    assert "sessions only" in done.stdout and "TF_LSTM_OPS_SESSIONS_ONLY=1" in done.stdout
    done = run(site, COMMAND_LINE, "demo")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "has sessions only" in done.stderr
