"""`tf_lstm_ops.inference` in a process that has NumPy only."""

from pathlib import Path

import keras
import numpy as np
import pytest

import tf_lstm_ops
from session.without_tensorflow import HOOK, run
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import LSTM

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
