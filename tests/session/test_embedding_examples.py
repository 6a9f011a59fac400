"""examples/indices.c and classify.c: models that begin with an embedding, in C."""

import runpy
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tf_lstm_ops import inference
from tf_lstm_ops.inference import Session, layers

ROOT = Path(__file__).resolve().parents[2]
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror"]


@pytest.fixture(scope="module")
def compiler() -> list[str]:
    native = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
    try:
        return native["compiler"]()
    except native["BuildError"] as error:
        pytest.skip(str(error))


@pytest.fixture(params=["c11", "c++17"])
def build(
    request: pytest.FixtureRequest, compiler: list[str], tmp_path: Path
) -> Callable[[str], Path]:
    return lambda name: compiled(name, request.param, compiler, tmp_path)


def compiled(name: str, standard: str, compiler: list[str], folder: Path) -> Path:
    library = Path(inference.get_library_dir()) / "libtf_lstm_ops_inference.so"
    language = "c++" if "+" in standard else "c"
    source = ["-x", language, f"-std={standard}", *STRICT, ROOT / "examples" / f"{name}.c"]
    command = [*compiler, *source, "-x", "none", library, "-I", inference.get_include()]
    command += [f"-Wl,-rpath,{library.parent}", "-o", folder / name]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / name


def run(program: Path, file: Path, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, file], input=text, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("whole", [True, False])
def test_outputs(
    build: Callable[[str], Path], tmp_path: Path, rng: np.random.Generator, whole: bool
) -> None:
    """Equal, bit for bit, to a stream in Python; an index out of range is an error."""
    program = build("indices")
    weights = [rng.normal(size=shape).astype("float32") for shape in ((3, 8), (2, 8))]
    lstm = layers.LSTM(weights, return_sequences=whole)
    session = Session.from_layers([layers.Embedding(rng.normal(size=(5, 3))), lstm])
    session.save(tmp_path / "m")
    indices = [4, 0, 2]
    stream = session.stream()
    expected = [stream(np.array([[index]], np.int32)).ravel() for index in indices]
    done = run(program, tmp_path / "m", "4 0\n2")
    assert done.returncode == 0, done.stderr
    found = [[np.float32(number) for number in line.split()] for line in done.stdout.splitlines()]
    np.testing.assert_array_equal(found, expected)
    done = run(program, tmp_path / "m", "5")
    assert (done.returncode, done.stdout) == (1, "") and "is 5, must be 0 to 4" in done.stderr


def test_classes_of_texts(
    build: Callable[[str], Path], tmp_path: Path, rng: np.random.Generator
) -> None:
    """Of a bidirectional model, which cannot stream: equal, bit for bit, to the session in Python.
    A text of padding only, a word out of range, and something that is no number."""
    program = build("classify")
    weights = [rng.normal(size=shape).astype("float32") for shape in ((3, 8), (2, 8))] * 2
    session = Session.from_layers(
        [
            layers.Embedding(rng.normal(size=(5, 3)), mask_zero=True),
            layers.LSTM(weights),
            layers.Dense(rng.normal(size=(4, 3)), activation="softmax"),
        ]
    )
    assert not session.can_stream
    session.save(tmp_path / "m")
    texts = [[4, 1, 2], [3], [1, 0, 0, 0], [0, 0]]
    lines = [" ".join(map(str, text)) for text in texts]
    done = run(program, tmp_path / "m", "\n".join(lines))
    assert done.returncode == 0, done.stderr
    found = [[np.float32(number) for number in line.split()] for line in done.stdout.splitlines()]
    want = [session(np.array([text], np.int32))[0] for text in texts]
    np.testing.assert_array_equal(found, want)
    done = run(program, tmp_path / "m", "1 5\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("classify: invalid argument: ")
    assert "is 5, must be 0 to 4" in done.stderr
    done = run(program, tmp_path / "m", "1 2\n3 x\n")
    assert done.returncode == 1 and len(done.stdout.splitlines()) == 1
    assert "at most 4096 integers" in done.stderr
