"""`tf_lstm_ops.inference` in a process that has NumPy only."""

import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import tf_lstm_ops
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import LSTM

# Hides every module but those of Python and of NumPy, in two ways.
HOOK = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first not in {"numpy", "tf_lstm_ops", *sys.stdlib_module_names}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name in ("tensorflow", "keras") else found(name, package)
)
"""
POISON = """
import sys
sys.modules["tensorflow"] = sys.modules["keras"] = None
"""
PROGRAM = """
import numpy as np
from tf_lstm_ops.inference import Session

session = Session.load("model.bin", threads=2)
x = np.load("x.npy")
np.save("y.npy", session(x))
stream = session.stream(len(x))
np.save("steps.npy", np.stack([stream(x[:, t]) for t in range(x.shape[1])], axis=1))
session.save("again.bin")
import tf_lstm_ops
assert tf_lstm_ops.inference.Session is Session
assert not any(sys.modules.get(name) for name in ("tensorflow", "keras"))
tf_lstm_ops.weights.LSTMWeights
for name in "export", "keras", "raw_ops", "stock":
    try:
        getattr(tf_lstm_ops, name)
    except ImportError as error:
        assert "needs TensorFlow 2.18 or newer, and none is installed. Type one of" in str(error)
    else:
        raise AssertionError(name)
try:
    tf_lstm_ops.nothing
except AttributeError:
    pass
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    # The installed package, not the source folder.
    start = f"import sys; sys.path.insert(0, {str(Path(tf_lstm_ops.__file__).parents[1])!r})\n"
    command = [sys.executable, "-c", start + program]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


@pytest.mark.parametrize("how", [HOOK, POISON], ids=["hook", "poison"])
def test_load(how: str, tmp_path: Path, rng: np.random.Generator) -> None:
    model = keras.Sequential(
        [keras.Input((None, 6)), LSTM(8, return_sequences=True), keras.layers.Dense(3, "tanh")]
    )
    session, x = Session(model), rng.normal(size=(2, 9, 6)).astype("float32")
    session.save(tmp_path / "model.bin")
    np.save(tmp_path / "x.npy", x)
    process = run(how + PROGRAM, tmp_path)
    assert process.returncode == 0, process.stderr
    for name in "y", "steps":
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), session(x))
    assert (tmp_path / "again.bin").read_bytes() == (tmp_path / "model.bin").read_bytes()


def test_folders_for_programs_in_c(tmp_path: Path) -> None:
    program = HOOK + (
        "from tf_lstm_ops import inference\n"
        "print(inference.get_include(), inference.get_library_dir(), sep='\\n')"
    )
    process = run(program, tmp_path)
    assert process.returncode == 0, process.stderr
    package = Path(tf_lstm_ops.__file__).parent
    assert [*map(Path, process.stdout.splitlines())] == [package / "include", package / "_lib"]
    assert (package / "_lib" / "libtf_lstm_ops_inference.so").exists()


def test_a_model_needs_keras(tmp_path: Path) -> None:
    program = HOOK + "from tf_lstm_ops.inference import Session\nSession([])"
    process = run(program, tmp_path)
    assert process.returncode == 1
    assert "ImportError: tf_lstm_ops needs TensorFlow" in process.stderr
