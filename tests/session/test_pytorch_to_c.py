"""examples/pytorch_to_c: the commands of its README, and what they print."""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tf_lstm_ops
from tf_lstm_ops import inference
from tf_lstm_ops.inference import Session, layers

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "pytorch_to_c"
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror"]


@pytest.fixture(scope="module")
def compiler() -> list[str]:
    native = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
    try:
        found: list[str] = native["compiler"]()
    except native["BuildError"] as error:
        pytest.skip(str(error))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the example, to which the commands write."""
    return Path(shutil.copytree(EXAMPLE, tmp_path / "pytorch_to_c"))


def commands(compiler: list[str]) -> list[str]:
    """Those of the README, with the interpreter and the compiler of the tests."""
    [block] = re.findall(r"^```sh\n(.*?)^```", (EXAMPLE / "README.md").read_text(), re.M | re.S)
    language = shlex.join([*compiler, "-x", "c"])
    return [
        re.sub(r"\bpython ", f"{shlex.quote(sys.executable)} ", line)
        .replace("cc -std", f"{language} -std")
        .replace(" stream.c ", " stream.c -x none ")
        for line in block.splitlines()
    ]


@pytest.mark.full  # it trains
@pytest.mark.torch
@pytest.mark.parametrize("option", ["", " --onnx"])
def test_commands_of_the_readme(compiler: list[str], folder: Path, option: str) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    if not (Path(inference.get_library_dir()) / "libtf_lstm_ops_inference.a").exists():
        pytest.skip("the package has no static library")
    root = str(Path(tf_lstm_ops.__file__).parents[1])
    done = subprocess.run(
        "set -e\n" + "\n".join(commands(compiler)).replace("convert.py", f"convert.py{option}"),
        shell=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    loss, difference, *pairs = done.stdout.splitlines()
    assert float(loss.rpartition(" ")[2]) < 0.1  # of a variance of about 0.4
    assert float(difference.rpartition(" ")[2]) < 1e-6
    expected, found = np.array([pair.split() for pair in pairs], np.float64).T
    assert len(found) == 480 and np.ptp(expected) > 1
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)  # roundings of float32


def build(compiler: list[str], language: str, folder: Path) -> Path:
    library = Path(inference.get_library_dir()) / "libtf_lstm_ops_inference.so"
    source = ["-x", {"c11": "c", "c++17": "c++"}[language], f"-std={language}", *STRICT]
    command = [*compiler, *source, str(folder / "stream.c"), "-x", "none", str(library)]
    command += ["-I", inference.get_include(), f"-Wl,-rpath,{library.parent}"]
    done = subprocess.run([*command, "-o", folder / "stream"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "stream"


def run(program: Path, file: object, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *([str(file)] if file else [])], input=text, capture_output=True, text=True
    )


@pytest.mark.parametrize("language", ["c11", "c++17"])
def test_several_features(compiler: list[str], folder: Path, language: str) -> None:
    kernel = np.array([[1, 0, 2], [0, 1, 2]], np.float32)
    Session.from_layers([layers.Input((None, 2)), layers.Dense(kernel)]).save(folder / "m")
    done = run(build(compiler, language, folder), folder / "m", "1 2\n3 0.5\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 2 6\n3 0.5 7\n", "")


def test_errors(compiler: list[str], folder: Path) -> None:
    program = build(compiler, "c11", folder)
    chain = [layers.Input((None, 2)), layers.Dense(np.eye(2))]
    Session.from_layers(chain).save(folder / "m")
    Session.from_layers([*chain, layers.FirstStep()]).save(folder / "first")
    for file, text, status, message in [
        (None, "", 2, "usage: stream FILE"),
        (folder / "missing", "", 1, "cannot open the model"),
        (folder / "first", "", 1, "cannot open a stream"),
        (folder / "m", "1 2 x", 1, "the input must be numbers"),
    ]:
        done = run(program, file, text)
        assert (done.returncode, message in done.stderr) == (status, True), done.stderr
