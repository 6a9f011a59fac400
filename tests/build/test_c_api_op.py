"""The op of docs/contributing/c_api_op.md, built by its command; slow: a binary in each version."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT, blocks

PAGE = (ROOT / "docs" / "contributing" / "c_api_op.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "c_api_op"
CHECKS = Path(__file__).with_name("clip_rows_checks.py")
VERSIONS = ["2.18.1", "2.20.0", "2.21.0"]  # the oldest that the package supports comes first
LIBRARY = "libclip_rows.so"
TENSORFLOW = '"$TF/libtensorflow_framework.so.2"'  # in the page's command

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the page's command is for Linux")


def build(folder: Path, python: str, cxx: list[str], command: str | None = None) -> Path:
    """Copies the example and runs the page's command there, with a Python that has TensorFlow."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
    tools = folder / "tools"
    tools.mkdir()
    (tools / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(python)} "$@"\n')
    (tools / "python").chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    shell = ["sh", "-e", "-c", command or blocks(PAGE, "sh")[0]]
    env = {**os.environ, "PATH": path, "CXX": shlex.join(cxx)}
    done = subprocess.run(shell, cwd=folder, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (folder / LIBRARY).exists()
    return folder


def run(python: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([python, *arguments], capture_output=True, text=True)


def assert_passes_checks(folder: Path, python: str) -> None:
    done = run(python, CHECKS, folder)
    assert done.returncode == 0, done.stderr
    checks = re.findall(r"^def (check_\w+)", CHECKS.read_text(), re.MULTILINE)
    assert len(checks) > 5
    assert done.stdout.split() == checks


@pytest.fixture(scope="module")
def example(tmp_path_factory, cxx) -> Path:
    return build(tmp_path_factory.mktemp("example"), sys.executable, cxx)


def test_page_shows_the_files() -> None:
    assert blocks(PAGE, "cpp") == [(EXAMPLE / "clip_rows.cc").read_text()]
    assert blocks(PAGE, "python")[0] == (EXAMPLE / "clip_rows.py").read_text()


@pytest.mark.full
def test_checks(example: Path) -> None:
    """Values, gradients, shapes, wrong arguments and XLA, with the installed TensorFlow."""
    assert_passes_checks(example, sys.executable)


@pytest.mark.full
def test_page_prints_what_it_says(example: Path) -> None:
    program = example / "use.py"  # beside clip_rows.py, which is the page's first block
    program.write_text("".join(blocks(PAGE, "python")[1:]))
    done = run(sys.executable, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"^print\(.*\)  # (.*)$", PAGE, re.MULTILINE)


@pytest.mark.full
def test_load_op_library_does_not_call_init_kernel(cxx, tmp_path) -> None:
    (tmp_path / "init.cc").write_text(
        '#include <cstdlib>\nextern "C" void TF_InitKernel() { std::_Exit(3); }\n'
    )
    command = [*cxx, "-shared", "-fPIC", "init.cc", "-o", "init.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    program = "import sys, tensorflow as tf\ntf.load_op_library(sys.argv[1])\n"
    assert run(sys.executable, "-c", program, tmp_path / "init.so").returncode == 0
    loader = "from tensorflow.python.framework.load_library import load_pluggable_device_library\n"
    program += f"{loader}load_pluggable_device_library(sys.argv[1])\n"
    assert run(sys.executable, "-c", program, tmp_path / "init.so").returncode == 3


@pytest.fixture(scope="module", params=VERSIONS)
def python(request, pythons) -> str:
    return pythons(request.param)


@pytest.fixture(scope="module")
def pythons(tmp_path_factory):
    """The interpreter of a virtual environment with a TensorFlow, made at its first use."""
    made: dict[str, str] = {}

    def make(version: str) -> str:
        if version not in made:
            folder = tmp_path_factory.mktemp(version)
            subprocess.run([sys.executable, "-m", "venv", folder], check=True)
            made[version] = str(folder / "bin" / "python")
            pip = [made[version], "-m", "pip", "install", "-q", f"tensorflow-cpu=={version}"]
            subprocess.run(pip, check=True)
        return made[version]

    return make


@pytest.fixture(scope="module")
def oldest(pythons, tmp_path_factory, cxx) -> Path:
    """The example built with the oldest TensorFlow."""
    return build(tmp_path_factory.mktemp("oldest"), pythons(VERSIONS[0]), cxx)


@pytest.mark.slow
def test_one_binary_runs_on_each_version(oldest: Path, python: str) -> None:
    assert_passes_checks(oldest, python)


@pytest.mark.slow
def test_without_the_name_of_tensorflows_library(tmp_path, pythons, python, cxx) -> None:
    """The oldest version does not find its functions, the newer ones do, as the page says."""
    command = blocks(PAGE, "sh")[0]
    assert TENSORFLOW in command
    command = command.replace(TENSORFLOW, "")
    folder = build(tmp_path / "nameless", pythons(VERSIONS[0]), cxx, command)
    if python == pythons(VERSIONS[0]):
        assert "undefined symbol: TF_DeleteTensor" in run(python, CHECKS, folder).stderr
    else:
        assert_passes_checks(folder, python)
