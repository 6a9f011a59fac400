"""examples/predict.c: a SavedModel in a process without Python, built as its README says."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import tf_lstm_ops
from tf_lstm_ops import _library

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="the libraries have other names"
    ),
]

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
LIBRARY = str(_library.path())
FEATURES = 3


def compiler() -> list[str]:
    """A compiler for C: $CC, or the one for C++, which the package was built with."""
    if os.environ.get("CC"):
        return shlex.split(os.environ["CC"])
    native = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
    return [*native["compiler"](), "-x", "c"]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled by the README's command, with all warnings as errors."""
    folder = tmp_path_factory.mktemp("program")
    shutil.copy(EXAMPLES / "predict.c", folder)
    readme = (EXAMPLES / "README.md").read_text()
    (command,) = re.findall(r"^cc (.* predict\.c .*)$", readme, re.MULTILINE)
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run(
        f"{shlex.join([*compiler(), *strict])} {command}",
        shell=True,
        cwd=folder,
        env={**os.environ, "TF": tf.sysconfig.get_lib()},
        check=True,
    )
    return folder / "predict"


class Model(NamedTuple):
    keras: keras.Model
    folder: Path
    portable: Path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Of layers of ours alone, whose results do not depend on how a session runs its graph."""
    keras.utils.set_random_seed(0)
    layers = tf_lstm_ops.keras
    model = keras.Sequential(
        [
            keras.Input((None, FEATURES)),
            keras.layers.Masking(),
            layers.LSTM(5, use_peephole=True, cell_clip=0.5, return_sequences=True),
            layers.GRU(4, return_sequences=True),
        ]
    )
    folder = tmp_path_factory.mktemp("models")
    tf_lstm_ops.export.saved_model(model, folder / "model")
    tf_lstm_ops.export.saved_model(model, folder / "portable", portable=True)
    return Model(model, folder / "model", folder / "portable")


def inputs(batch: int, time: int) -> np.ndarray:
    """[batch, time, FEATURES]; the first sequence is padded on both sides."""
    x = np.random.default_rng(1).normal(size=(batch, time, FEATURES)).astype("float32")
    x[0, : time // 4] = 0
    x[0, time // 2 :] = 0
    return x


def tensor_names(folder: Path) -> list[str]:
    """Of the signature's only input and output, as saved_model_cli shows them."""
    saved = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    signature = saved.meta_graphs[0].signature_def["serving_default"]
    (x,), (y,) = signature.inputs.values(), signature.outputs.values()
    return [x.name, y.name]


def run(
    program: Path, *arguments: object, numbers: np.ndarray | None = None
) -> subprocess.CompletedProcess[str]:
    text = "" if numbers is None else " ".join(map(str, numbers.ravel()))
    return subprocess.run(
        [program, *map(str, arguments)], input=text, capture_output=True, text=True, check=False
    )


def predict(program: Path, library: str, folder: Path, x: np.ndarray) -> np.ndarray:
    """What the program prints, line by line."""
    process = run(program, library, folder, *tensor_names(folder), *x.shape, numbers=x)
    assert process.returncode == 0, process.stderr
    return np.array([line.split() for line in process.stdout.splitlines()], "float32")


@pytest.mark.parametrize("shape", [(4, 12), (1, 5)])
def test_predicts_what_python_predicts(program: Path, model: Model, shape: tuple) -> None:
    """To the last digit: batch and time are the program's to choose."""
    x = inputs(*shape)
    expected = model.keras.predict(x, verbose=0)
    assert np.all(np.isfinite(expected)) and np.any(expected)
    found = predict(program, LIBRARY, model.folder, x)
    np.testing.assert_array_equal(found.reshape(expected.shape), expected)


def test_a_portable_model_needs_no_library(program: Path, model: Model) -> None:
    x = inputs(4, 12)
    expected = model.keras.predict(x, verbose=0)
    found = predict(program, "-", model.portable, x)
    # Other ops compute the same values, below 1, over 12 steps: some units in float32's last place.
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=0, atol=2e-6)


def test_without_the_library_the_error_says_what_to_do(program: Path, model: Model) -> None:
    x = inputs(1, 5)
    process = run(program, "-", model.folder, *tensor_names(model.folder), *x.shape, numbers=x)
    assert process.returncode == 1
    assert re.search(
        r"cannot load the model: Op type not registered 'TfLstmOps>\w+'", process.stderr
    )
    assert "give the native library of tf_lstm_ops as LIBRARY" in process.stderr
    assert process.stdout == ""


def test_an_error_of_the_op_reaches_the_user(program: Path, model: Model) -> None:
    process = run(
        program, LIBRARY, model.folder, *tensor_names(model.folder), 5, 3, numbers=np.ones(15)
    )
    assert process.returncode == 1
    assert "cannot run the model: x must be rank 3 but is rank 2" in process.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"LIBRARY": "missing.so"}, "cannot load the library: missing.so"),
        ({"SAVED_MODEL": "missing"}, "cannot load the model: Could not find SavedModel"),
        ({"INPUT": "missing:0"}, "the model has no tensor missing:0"),
        ({"OUTPUT": "name"}, "name is no name such as operation:0"),
        ({"DIM": ["5", "x"]}, "DIM... must be at most 8 positive numbers"),
        ({"DIM": ["1", "4", "3"]}, "the input must be 12 numbers, no more and no less"),
        ({"DIM": ["1", "6", "3"]}, "the input must be 18 numbers, no more and no less"),
    ],
)
def test_wrong_arguments(program: Path, model: Model, change: dict, message: str) -> None:
    """The input has 15 numbers."""
    names = dict(zip(["INPUT", "OUTPUT"], tensor_names(model.folder), strict=True))
    right = {"LIBRARY": LIBRARY, "SAVED_MODEL": model.folder, **names, "DIM": ["1", "5", "3"]}
    *arguments, dims = (right | change).values()
    process = run(program, *arguments, *dims, numbers=np.ones(15))
    assert process.returncode == 1
    assert message in process.stderr


def test_usage(program: Path) -> None:
    process = run(program, "-")
    assert process.returncode == 2
    assert "usage: predict LIBRARY SAVED_MODEL INPUT OUTPUT DIM... < numbers" in process.stderr
