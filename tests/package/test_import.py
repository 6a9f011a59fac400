"""`import tf_lstm_ops` in a new process: modules, op functions, native library, written files."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf

from tf_lstm_ops import _library, _tensorflow

PROGRAM = """
import sys
import warnings
import keras
import tensorflow as tf

tf.keras.layers  # loaded at its first use
before = set(sys.modules)
with warnings.catch_warnings():
    warnings.simplefilter("error")
    import tf_lstm_ops

print(*sorted(set(sys.modules) - before))
print(tf_lstm_ops._library.load.cache_info().currsize)
tf_lstm_ops._library.register()
print(tf_lstm_ops._library.is_built(), tf_lstm_ops._library.gpu_path())
if sys.platform == "linux":
    maps = open("/proc/self/maps").read().split()
    print(next(part for part in maps if part.endswith("/tf_lstm_ops.so")))
"""
# What only a command or a type checker needs. Packages such as matplotlib and onnx are
# not the package's own modules, of which the test says more.
LATER = ("tf_lstm_ops.selftest", "tf_lstm_ops.cli", "tf_lstm_ops.raw_ops.types")


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """What it printed, its folder of the user's cache, and the library that a variable named."""
    folder = tmp_path_factory.mktemp("import")
    cache, library = folder / "cache", folder / "other" / "tf_lstm_ops.so"
    for path in cache, library.parent:
        path.mkdir()
    shutil.copy(_library.path(), library)
    names = {"XDG_CACHE_HOME": str(cache), "TF_LSTM_OPS_LIBRARY": str(library)}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **names},
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert run.returncode == 0, run.stderr
    return SimpleNamespace(lines=run.stdout.splitlines(), cache=cache, library=library)


@pytest.mark.full
def test_modules_and_op_functions(process: SimpleNamespace) -> None:
    """The package's own modules only, and no op function yet."""
    loaded = set(process.lines[0].split())
    assert "tf_lstm_ops.raw_ops" in loaded
    # Also none of TensorFlow's generated modules, whose names are digests.
    assert {module.partition(".")[0] for module in loaded} == {"tf_lstm_ops"}
    assert not {m for m in loaded if m.startswith(LATER)}
    assert process.lines[1] == "0"


@pytest.mark.full
def test_without_a_gpu_nothing_is_written(process: SimpleNamespace) -> None:
    assert not (process.cache / "tf_lstm_ops").exists()


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="reads Linux's /proc")
def test_the_variable_names_another_library(process: SimpleNamespace, monkeypatch) -> None:
    monkeypatch.delenv("TF_LSTM_OPS_LIBRARY", raising=False)
    own = _library.path()
    # The library for GPUs stays that of the package.
    assert process.lines[2:] == [
        f"True {own.with_name('tf_lstm_ops_cuda.so')}",
        str(process.library),
    ]
    monkeypatch.setenv("TF_LSTM_OPS_LIBRARY", str(process.library))
    assert _library.path() == process.library


def test_without_tensorflow() -> None:
    """The message says what to type. `inference` works; session/ has its tests."""
    program = "import sys; sys.modules['tensorflow'] = None; import tf_lstm_ops; "
    program += "tf_lstm_ops.inference.Session; from tf_lstm_ops import keras"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.returncode == 1
    last = run.stderr.splitlines()[-1]
    assert last.startswith("ImportError: tf_lstm_ops needs TensorFlow 2.18 or newer, and none")
    assert "pip install 'tensorflow>=" in last


@pytest.mark.parametrize("version, fits", [("2.17.1", False), ("2.18.0", True), ("3.0", True)])
def test_old_tensorflow(monkeypatch: pytest.MonkeyPatch, version: str, fits: bool) -> None:
    monkeypatch.setattr(tf, "__version__", version)
    if fits:
        return _tensorflow.check()
    with pytest.raises(ImportError, match=r"2\.17\.1 is installed\. Type one of: pip install"):
        _tensorflow.check()


def test_an_installation_from_a_clone_runs_the_commands_of_readme() -> None:
    """A released wheel requires NumPy only, which scripts/release/check checks."""
    required = importlib.metadata.requires("tf_lstm_ops")
    found = {re.match(r"[\w-]+", name)[0] for name in required if ";" not in name}
    assert found == {"keras", "matplotlib", "numpy", "tensorflow"}
