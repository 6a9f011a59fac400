"""`import tf_lstm_ops` before and after TensorFlow and Keras, each order in a new process."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

import tf_lstm_ops
from tf_lstm_ops.keras import LSTM

LIGHT = """
import sys
found = {name.partition(".")[0] for name in sys.modules}
assert not found & {"tensorflow", "keras", "torch", "jax", "h5py"}, found
"""
# What a program can do after the imports. The op has its gradient by Python.
ALL_WORKS = """
import sys, keras, numpy as np, tensorflow as tf
x, y = np.load("x.npy"), np.load("y.npy")
loaded = tf.saved_model.load("saved")
np.testing.assert_array_equal(loaded.serve(x), y)
np.testing.assert_array_equal(keras.models.load_model("model.keras")(x), y)
with tf.GradientTape() as tape:
    w = tf.Variable(tf.ones([3, 4]))
    state, peepholes = tf.ones([1, 1]), dict.fromkeys(("wci", "wcf", "wco"), [1.0])
    cell = tf.raw_ops.LSTMBlockCell(
        x=tf.ones([1, 2]), cs_prev=state, h_prev=state, w=w, b=tf.ones([4]), **peepholes
    )
assert tape.gradient(cell.h, w) is not None
assert "tf_lstm_ops.export" in sys.modules  # it replaces parts of model.export
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model as a SavedModel and as a .keras file, its input and its output."""
    folder = tmp_path_factory.mktemp("files")
    model = keras.Sequential([keras.Input((3, 2)), LSTM(4)])
    x = np.ones([5, 3, 2], "float32")
    tf_lstm_ops.export.saved_model(model, folder / "saved")
    model.save(folder / "model.keras")
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", model(x))
    return folder


def run(program: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a program with this package. The variables are of its environment."""
    parent = str(Path(tf_lstm_ops.__file__).parents[1])
    path = os.pathsep.join(filter(None, (parent, os.environ.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path, **variables},
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
    )


@pytest.mark.parametrize("module", ["inference", "weights"])
def test_modules_that_need_numpy_only(module: str, tmp_path: Path) -> None:
    process = run(f"import tf_lstm_ops.{module}\n{LIGHT}", tmp_path)
    assert process.returncode == 0, process.stderr


ORDERS = [
    "import tf_lstm_ops.inference, tf_lstm_ops.weights; import tensorflow",
    *(
        pytest.param(order, marks=pytest.mark.full)
        for order in (
            "import tf_lstm_ops, keras",
            "import tensorflow, tf_lstm_ops",
            "import keras, tf_lstm_ops",
            "import tf_lstm_ops.keras",
            "import tf_lstm_ops.keras.lstm",
            "import tf_lstm_ops.raw_ops",
            "import tf_lstm_ops.stock",
            "import tf_lstm_ops.export",
            "import tf_lstm_ops; tf_lstm_ops.raw_ops",
            "from tf_lstm_ops import weights, stock",
            "import importlib.util, tf_lstm_ops; importlib.util.find_spec('tensorflow')",
        )
    ),
]


@pytest.mark.full
@pytest.mark.parametrize("order", ORDERS)
def test_files_are_loaded_after_imports_in_any_order(order: str, folder: Path) -> None:
    process = run(order + ALL_WORKS, folder)
    assert process.returncode == 0, process.stderr
    assert "RuntimeWarning" not in process.stderr  # of this package


THREADS = """
import threading
import tf_lstm_ops
programs = [
    "import tensorflow", "import tf_lstm_ops.keras", "import tf_lstm_ops.export",
    "import tf_lstm_ops.raw_ops; tf_lstm_ops.raw_ops.BlockLSTM", "from tf_lstm_ops import stock",
]
errors, start = [], threading.Barrier(len(programs))
def work(program):
    start.wait()
    try:
        exec(program, {})
    except BaseException as error:
        errors.append((program, repr(error)))
threads = [threading.Thread(target=work, args=[p], daemon=True) for p in programs]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not errors, errors
"""


@pytest.mark.full
def test_threads_that_import_at_once(folder: Path) -> None:
    for _ in range(3):
        process = run(THREADS + ALL_WORKS, folder)
        assert process.returncode == 0, process.stderr
        assert "RuntimeWarning" not in process.stderr


@pytest.mark.full
def test_a_wrong_variable_does_not_break_tensorflow(folder: Path) -> None:
    """The import of TensorFlow warns, and the first use of the package fails."""
    program = (
        "import warnings, tf_lstm_ops\n"
        "with warnings.catch_warnings(record=True) as found:\n    import tensorflow as tf\n"
        "assert 'TF_LSTM_OPS_SIMD must be one of' in str(found[-1].message)\n"
        "tf.constant(1)\ntf_lstm_ops.raw_ops"
    )
    process = run(program, folder, TF_LSTM_OPS_SIMD="none")
    assert process.stderr.splitlines()[-1].startswith("ValueError: the environment variable TF_")


def test_a_tensorflow_that_cannot_be_imported(tmp_path: Path) -> None:
    (tmp_path / "tensorflow.py").write_text("raise ImportError('libother.so is missing')")
    program = f"import tf_lstm_ops.weights\n{LIGHT}\nimport tf_lstm_ops.keras"
    process = run(program, tmp_path)
    assert process.stderr.splitlines()[-1] == "ImportError: libother.so is missing"
