"""examples/indices.c: a model that begins with an embedding, step by step in C."""

import runpy
import subprocess
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
def program(request: pytest.FixtureRequest, compiler: list[str], tmp_path: Path) -> Path:
    library = Path(inference.get_library_dir()) / "libtf_lstm_ops_inference.so"
    language = "c++" if "+" in request.param else "c"
    source = ["-x", language, f"-std={request.param}", *STRICT, ROOT / "examples" / "indices.c"]
    command = [*compiler, *source, "-x", "none", library, "-I", inference.get_include()]
    command += [f"-Wl,-rpath,{library.parent}", "-o", tmp_path / "indices"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return tmp_path / "indices"


def run(program: Path, file: Path, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, file], input=text, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("whole", [True, False])
def test_outputs(program: Path, tmp_path: Path, rng: np.random.Generator, whole: bool) -> None:
    """Equal, bit for bit, to a stream in Python; an index out of range is an error."""
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
