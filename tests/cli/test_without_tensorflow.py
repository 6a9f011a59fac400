"""What the command line does where TensorFlow is not installed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tf_lstm_ops.inference import Session, native

# The command line in a process that cannot import TensorFlow and Keras.
PROGRAM = """
import sys
sys.modules["tensorflow"] = sys.modules["keras"] = None
sys.argv[0] = "tf-lstm-ops"
sys.orig_argv = ["python", *sys.argv]
from tf_lstm_ops.__main__ import main
sys.exit(main())
"""


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def test_info(tmp_path: Path) -> None:
    done = run(tmp_path, "info")
    assert (done.returncode, done.stderr) == (0, "")
    assert "not installed; layers and ops need it" in done.stdout
    assert f"version {native.API_VERSION} of the C API" in done.stdout
    assert done.stdout.splitlines()[-1].split()[:3] == ["next", "tf-lstm-ops", "convert"]


def test_info_as_json(tmp_path: Path) -> None:
    done = run(tmp_path, "info", "--all", "--json")
    found = json.loads(done.stdout)
    assert found["tensorflow"] is None
    assert found["session_library"]["api_version"] == native.API_VERSION


def test_a_command_that_needs_tensorflow(tmp_path: Path) -> None:
    done = run(tmp_path, "demo")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("tf-lstm-ops: tf_lstm_ops needs TensorFlow 2.18 or newer")
    assert "pip install" in done.stderr and "Traceback" not in done.stderr


def test_an_onnx_file_becomes_a_session(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="it reads the file")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    x, y = (helper.make_tensor_value_info(name, kind, ["B", 3]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "model.onnx"))
    done = run(tmp_path, "convert", "model.onnx", "model.session")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("model.session was written (")
    got = Session.load(tmp_path / "model.session")(np.float32([[-1, 0, 2]]))
    np.testing.assert_array_equal(got, [[0, 0, 2]])
