"""``tf-lstm-ops run``: a program runs as with python, with the layers of Keras on the fused ops."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tf_lstm_ops import _autostart

pytestmark = pytest.mark.full  # each starts processes

USES_KERAS = """
import numpy as np, keras
keras.layers.LSTM(4)(np.ones((2, 5, 3), "float32"))
keras.layers.GRU(4, activation="selu")(np.ones((2, 5, 3), "float32"))
"""
SUMMARY = "tf-lstm-ops: 1 of 2 recurrent layers ran fused ops"


def run(*words: object, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    return subprocess.run(
        [sys.executable, "-m", "tf_lstm_ops", "run", *map(str, words)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def write(folder: Path, text: str, name: str = "program.py") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_layers_run_fused_ops(tmp_path: Path) -> None:
    done = run(write(tmp_path, USES_KERAS), folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines()[-1] == SUMMARY
    done = run("--report", write(tmp_path, USES_KERAS), folder=tmp_path)
    assert done.stderr.splitlines()[-3:] == [
        "lstm   LSTM   KerasLSTM  1      0",
        "gru    GRU    none       0      1: activation is selu, which has no fused op",
        "1 of 2 recurrent layers ran fused ops",
    ]


AS_PYTHON = """
import json, os, sys
main = sys.modules["__main__"]
print(json.dumps({
    "argv": sys.argv, "name": __name__, "file": __file__, "first": sys.path[0],
    "path": len(sys.path), "spec": __spec__ and __spec__.name, "same": main.__dict__ is globals(),
    "flags": list(sys.flags), "warnoptions": sys.warnoptions,
    "tensorflow": "tensorflow" in sys.modules,
}))
sys.exit(7)
"""


@pytest.mark.parametrize("module", [False, True])
def test_a_program_sees_what_it_sees_in_python(tmp_path: Path, module: bool) -> None:
    program = write(tmp_path, AS_PYTHON)
    words = ["-m", "program"] if module else [str(program)]
    words += ["--report", "a b", "-m"]  # of the program
    options = ["-X", "dev", "-W", "ignore"]
    with_run, without = (
        subprocess.run(
            [sys.executable, *options, *prefix, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=100,
        )
        for prefix in (["-m", "tf_lstm_ops", "run"], [])
    )
    assert with_run.stdout == without.stdout != ""
    assert with_run.returncode == without.returncode == 7
    assert "did not import Keras" in with_run.stderr


@pytest.mark.parametrize("words", [["absent.py"], ["-m", "absent"], ["-c", "1 +"], ["-c", "1/0"]])
def test_an_error_before_keras_is_the_last_line(tmp_path: Path, words: list[str]) -> None:
    command = [sys.executable, "-m", "tf_lstm_ops", "run", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode and done.stderr and "tf-lstm-ops:" not in done.stderr


def test_the_table_begins_at_a_line_of_its_own(tmp_path: Path) -> None:
    program = write(
        tmp_path, "import keras\nkeras.layers.LSTM(2, name='x')(keras.ops.ones((1, 2, 3)))"
    )
    lines = run("--report", program, folder=tmp_path).stderr.splitlines()
    head = lines.index("tf-lstm-ops: ") + 1
    assert lines[head].split()[:2] == ["layer", "class"]
    assert lines[head + 1].index("LSTM") == lines[head].index("class")


def test_a_text_as_the_program(tmp_path: Path) -> None:
    done = run("-c", "import sys; print(sys.argv)", "--report", "a", folder=tmp_path)
    assert done.stdout == "['-c', '--report', 'a']\n"


def test_the_current_folder_in_pythonpath(tmp_path: Path) -> None:
    write(tmp_path, "print('local')", "local_module.py")
    (tmp_path / "folder").mkdir()
    program = write(tmp_path / "folder", "import local_module")
    path = os.pathsep.join(["", os.environ.get("PYTHONPATH", "absent")])
    assert run(program, folder=tmp_path, PYTHONPATH=path).stdout == "local\n"


def test_a_child_that_is_forked_prints_nothing(tmp_path: Path) -> None:
    text = "import os, sys\nif os.fork():\n    os.wait()\n"
    done = run(write(tmp_path, text), folder=tmp_path)
    assert done.stderr.count("tf-lstm-ops:") == 1


def test_errors_are_those_of_the_program(tmp_path: Path) -> None:
    program = write(tmp_path, "import sys\nprint(sys.stdin.read())\nraise KeyError('x')\n")
    command = [sys.executable, "-m", "tf_lstm_ops", "run", str(program)]
    done = subprocess.run(command, input="typed", capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (1, "typed\n")
    assert f'File "{program}", line 3' in done.stderr and "KeyError: 'x'" in done.stderr
    assert "tf_lstm_ops" not in done.stderr  # no frame of this package


def test_a_missing_program(tmp_path: Path) -> None:
    assert "can't open file" in run("absent.py", folder=tmp_path).stderr
    assert "run needs a SCRIPT" in run(folder=tmp_path).stderr
    assert run("-m", "absent_module", folder=tmp_path).returncode == 1


def test_signals_reach_the_program(tmp_path: Path) -> None:
    program = write(tmp_path, "print('ready', flush=True)\nimport time\ntime.sleep(100)\n")
    command = [sys.executable, "-m", "tf_lstm_ops", "run", str(program)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(100) == -signal.SIGINT


CHILDREN = """
import multiprocessing, os, subprocess, sys

def count(_):
    import keras, numpy as np
    from tf_lstm_ops.keras import acceleration
    keras.layers.LSTM(4)(np.ones((2, 5, 3), "float32"))
    return os.environ["TF_LSTM_OPS_ACCELERATE"], acceleration._active[0].report().summary

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.map(count, [0]))
    other = "import program; print(program.count(0))"
    subprocess.run([sys.executable, "-c", other], check=True)
"""


def test_child_processes(tmp_path: Path) -> None:
    done = run(write(tmp_path, CHILDREN), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("('1', '1 of 1 recurrent layers ran fused ops')") == 2
    assert done.stderr.count("tf-lstm-ops:") == 1  # this process only


def test_the_variable(tmp_path: Path) -> None:
    """Without `run`, processes that import the package obey it."""
    check = "from tf_lstm_ops.keras import acceleration; print(len(acceleration._active))"
    for value, wanted in (("1", "1"), ("0", "0"), ("", "0")):
        done = subprocess.run(
            [sys.executable, "-c", check],
            env={**os.environ, _autostart.VARIABLE: value},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == wanted


def test_the_users_sitecustomize_is_imported(tmp_path: Path) -> None:
    write(tmp_path, "print('mine')", "sitecustomize.py")
    program = write(tmp_path, "import sitecustomize\nprint(sitecustomize.__file__)")
    done = run(program, folder=tmp_path, PYTHONPATH=str(tmp_path))
    # Of this process, and of the one that took its place.
    assert done.stdout.splitlines() == ["mine", "mine", str(tmp_path / "sitecustomize.py")]


def test_keras_on_pytorch_beside_tensorflow(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="another backend")
    program = write(tmp_path, "import tensorflow, keras\n")
    done = run(program, folder=tmp_path, KERAS_BACKEND="torch")
    assert done.returncode == 0
    assert "0 of 0 recurrent layers ran fused ops" in done.stderr


def test_an_isolated_python(tmp_path: Path) -> None:
    command = [sys.executable, "-E", "-m", "tf_lstm_ops", "run", "x.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "run needs PYTHONPATH, which the options -E and -I of Python ignore" in done.stderr


def test_a_closed_stream(tmp_path: Path) -> None:
    program = write(tmp_path, "import sys\nsys.stderr.close()\n")
    assert run(program, folder=tmp_path).returncode == 0


def test_the_start_of_a_child_imports_neither_tensorflow_nor_numpy(tmp_path: Path) -> None:
    text = "import sys\nprint({'numpy', 'tensorflow', 'keras'} & {*sys.modules})"
    program = write(tmp_path, text)
    assert run(program, folder=tmp_path).stdout == "set()\n"
