"""``doctor --import MODULE``: models with classes of the user's."""

import sys
from pathlib import Path

import keras
import pytest

from tf_lstm_ops import __main__

LAYERS = """
import keras

print("a line of the module")

@keras.saving.register_keras_serializable("my_layers")
class Doubled(keras.layers.Layer):
    def call(self, x):
        return 2 * x

@keras.saving.register_keras_serializable("my_layers")
def cubed(x):
    return x**3
"""
QUICK = ("--no-timing", "--no-exports")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with my_layers.py, and with models that use it."""
    (tmp_path / "my_layers.py").write_text(LAYERS)
    own: dict[str, type] = {}
    exec(LAYERS, own)
    for suffix in ("keras", "h5"):
        stack = [keras.Input((5, 3)), keras.layers.LSTM(4), own["Doubled"]()]
        keras.Sequential(stack).save(tmp_path / f"class.{suffix}")
    stack = [keras.Input((5, 3)), keras.layers.Dense(2, activation=own["cubed"])]
    keras.Sequential(stack).save(tmp_path / "function.keras")
    return tmp_path


@pytest.mark.full
def test_imports_the_module(folder: Path, command) -> None:
    """In a process of its own, in which nothing is registered."""
    done = command("doctor", "class.keras", "--import", "my_layers", "--json", *QUICK, cwd=folder)
    assert done.stderr == ""
    assert done.stdout.startswith("{")  # without the line of the module
    assert '"class": "keras.layers.LSTM"' in done.stdout


@pytest.mark.full  # test_doctor.py has another class that Keras does not know
@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("class.keras", "Doubled"),
        ("class.h5", "my_layers>Doubled"),
        ("function.keras", "my_layers>cubed"),
    ],
)
def test_names_what_keras_does_not_know(folder: Path, command, model: str, name: str) -> None:
    done = command("doctor", model, cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"tf-lstm-ops: Keras cannot load {model}: it does not know {name}. Decorate it with "
        "keras.saving.register_keras_serializable, and name its Python module with "
        "--import MODULE\n"
    )


@pytest.mark.full
@pytest.mark.parametrize("model", ["class.h5", "function.keras"])
def test_other_files_and_functions(folder: Path, command, model: str) -> None:
    done = command("doctor", model, "--import", "my_layers", *QUICK, cwd=folder)
    assert done.stderr == ""
    assert "Recurrent layers" in done.stdout


def test_module_that_cannot_be_imported(folder: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr("sys.path", [*sys.path])
    (folder / "broken.py").write_text("1 / 0")
    for name, message in {
        "no_such_module": "ModuleNotFoundError: No module named 'no_such_module'",
        "broken": "ZeroDivisionError: division by zero",
    }.items():
        assert __main__.main(["doctor", "class.keras", "--import", name]) == 1
        assert capsys.readouterr().err == f"tf-lstm-ops: --import {name}: {message}\n"
