"""Keras on PyTorch. A process has one backend, so the cases run in processes of their own."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
KERAS = FOLDER.parent / "keras"

pytestmark = pytest.mark.torch

if importlib.util.find_spec("torch") is None:
    pytest.skip("PyTorch is not installed", allow_module_level=True)


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**environment, "KERAS_BACKEND": "torch", **variables},
        check=False,
    )


@pytest.mark.parametrize(
    "files",
    [
        (FOLDER / "cases_accelerate.py", FOLDER / "cases_transforms.py"),
        pytest.param((FOLDER / "cases_process.py",), marks=pytest.mark.full),
        (FOLDER / "cases_keras_own_suite.py",),
        pytest.param(
            (KERAS / "test_acceleration_random.py", "-m", "not slow"), marks=pytest.mark.full
        ),
    ],
    ids=lambda files: files[0].stem,
)
def test_cases(files: tuple[Path | str, ...]) -> None:
    """None is skipped."""
    done = run("-m", "pytest", "-q", "-n", "0", *map(str, files))
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"\n\d\d+ passed.* in ", done.stdout), done.stdout[-500:]
    assert "skipped" not in done.stdout


PROGRAM = """
import sys
import numpy as np
import {first}
import {second}
y = keras.layers.LSTM(3)(np.ones((2, 3, 4), "float32"))
assert "tensorflow" not in sys.modules
"""


@pytest.mark.parametrize("first", ["keras", pytest.param("tf_lstm_ops", marks=pytest.mark.full)])
def test_variable_accelerates(first: str) -> None:
    second = {"keras": "tf_lstm_ops", "tf_lstm_ops": "keras"}[first]
    report = "import tf_lstm_ops._autostart as a; print(a._accelerations[0].report().summary)"
    program = PROGRAM.format(first=first, second=second) + report
    done = run("-c", program, TF_LSTM_OPS_ACCELERATE="1")
    assert done.stdout == "1 of 1 recurrent layers ran fused ops\n", done.stderr


@pytest.mark.full
def test_command_accelerates() -> None:
    """`tf-lstm-ops run`."""
    program = PROGRAM.format(first="keras", second="keras")
    done = run("-m", "tf_lstm_ops", "run", "-c", program)
    assert done.returncode == 0, done.stderr
    assert "1 of 1 recurrent layers ran fused ops" in done.stderr


def test_what_is_of_tensorflow() -> None:
    program = """
import tf_lstm_ops.keras
print(hasattr(tf_lstm_ops.keras, "nonsense"))
try:
    from tf_lstm_ops.keras import LSTM
except ImportError as error:
    print(error)
"""
    first, second = run("-c", program).stdout.splitlines()
    assert first == "False"
    assert second.startswith("the layers of tf_lstm_ops need Keras with its TensorFlow backend")


@pytest.mark.full
def test_library_without_layers(tmp_path: Path) -> None:
    """As that of an installation with sessions only."""
    program = """
from unittest import mock
import warnings, numpy as np, keras
from tf_lstm_ops.inference import native
from tf_lstm_ops.keras import accelerate
mock.patch.object(native, "has_layers", lambda _: False).start()
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    accelerate()
keras.layers.LSTM(3)(np.ones((2, 3, 4), "float32"))
print(found[0].message)
"""
    done = run("-c", program)
    assert done.stdout.startswith("accelerate() has no effect: this installation has sessions only")
