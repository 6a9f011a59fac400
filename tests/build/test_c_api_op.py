"""The op of docs/guide/tensorflow_op.md, built and tested; slow: a binary in each version."""

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from pages import ROOT, blocks

PAGE = (ROOT / "docs" / "guide" / "tensorflow_op.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "c_api_op"
VERSIONS = ["2.18.1", "2.20.0", "2.21.0"]  # the oldest that the package supports comes first
TENSORFLOW = "NEEDED + tf.sysconfig.get_link_flags()"  # in setup.py

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the page was run on Linux only")


def run(command: list[str | Path], **kwargs) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, **kwargs)


def copy_project(folder: Path) -> Path:
    """Without what a build in the source folder has left."""
    built = shutil.ignore_patterns("build", "*.so", "*.egg-info", "__pycache__", ".pytest_cache")
    return Path(shutil.copytree(EXAMPLE, folder, ignore=built))


def test_page_shows_the_files() -> None:
    whole, part = blocks(PAGE, "cpp")
    assert whole == (EXAMPLE / "src" / "clip_rows.cc").read_text()
    assert part in (EXAMPLE / "src" / "scale_rows.cc").read_text()
    assert blocks(PAGE, "python")[0] == (EXAMPLE / "src" / "clip_rows" / "__init__.py").read_text()
    assert blocks((EXAMPLE / "README.md").read_text(), "sh")[:2] == blocks(PAGE, "sh")[:2]


def test_source_has_no_warnings(cxx) -> None:
    package = importlib.util.find_spec("tensorflow").submodule_search_locations[0]
    flags = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-isystem"]
    done = run([*cxx, *flags, f"{package}/include", *(EXAMPLE / "src").glob("*.cc")])
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def environment(tmp_path_factory, cxx) -> dict[str, str]:
    """The variables of an empty virtual environment that sees this one's packages."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "tests.pth").write_text(sysconfig.get_path("purelib"))
    for name in ("pip", "pytest"):
        program = folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{folder}/bin/python" -m {name} "$@"\n')
        program.chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "CXX": shlex.join(cxx)}


@pytest.mark.full
def test_commands_of_the_page(environment, tmp_path) -> None:
    """They install the project and run its tests, of values, derivatives, shapes and errors. Those
    of a new environment, which download TensorFlow, are in docs/test_installs.py."""
    project = copy_project(tmp_path / "project")
    shell = ["sh", "-e", "-c", blocks(PAGE, "sh")[1] + "pytest\n"]
    done = run(shell, cwd=project, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^=+ \d\d passed in ", done.stdout, re.MULTILINE), done.stdout
    example = run(["python", "-c", blocks(PAGE, "python")[1]], cwd=tmp_path, env=environment)
    assert example.returncode == 0, example.stderr
    assert example.stdout.splitlines() == re.findall(r"^print\(.*\)  # (.*)$", PAGE, re.MULTILINE)


def test_the_commands_of_the_readme() -> None:
    """They copy the project, and run what the page runs."""
    readme = blocks((ROOT / "README.md").read_text(), "sh")[1].replace(".venv/bin/", "")
    [copy, _, *build] = readme.replace("\n", " && ").strip(" &").split(" && ")
    assert copy.split()[:3] == ["cp", "-r", EXAMPLE.relative_to(ROOT).as_posix()]
    page = blocks(PAGE, "sh")[0].replace(" && . .venv/bin/activate", "")
    assert build == page.splitlines()


@pytest.mark.full
def test_the_command_of_the_compiler(environment, tmp_path) -> None:
    project = copy_project(tmp_path / "project")
    done = run(["sh", "-e", "-c", blocks(PAGE, "sh")[2]], cwd=project, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    program = "import tensorflow as tf; print(tf.load_op_library('./libclip_rows.so'))"
    assert run(["python", "-c", program], cwd=project, env=environment).returncode == 0


@pytest.mark.full
def test_a_copy_under_another_name(environment, tmp_path) -> None:
    """The commands of the README leave no old name, and the tests of the copy pass."""
    project = copy_project(tmp_path / "project")
    _, install, rename = blocks((EXAMPLE / "README.md").read_text(), "sh")
    (project / "README.md").unlink()
    done = run(["sh", "-e", "-c", f"{rename}{install}pytest"], cwd=project, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^=+ \d\d passed in ", done.stdout, re.MULTILINE), done.stdout
    files = [f for f in project.rglob("*") if f.suffix in (".py", ".cc", ".h", ".toml")]
    old = [f for f in files if re.search("(?i)clip_?rows|example[>_]", f.read_text() + f.name)]
    assert old == []


@pytest.mark.full
def test_load_op_library_does_not_call_init_kernel(cxx, tmp_path) -> None:
    (tmp_path / "init.cc").write_text(
        '#include <cstdlib>\nextern "C" void TF_InitKernel() { std::_Exit(3); }\n'
    )
    command = [*cxx, "-shared", "-fPIC", "init.cc", "-o", "init.so"]
    subprocess.run(command, cwd=tmp_path, check=True)
    program = "import sys, tensorflow as tf\ntf.load_op_library(sys.argv[1])\n"
    assert run([sys.executable, "-c", program, tmp_path / "init.so"]).returncode == 0
    loader = "from tensorflow.python.framework.load_library import load_pluggable_device_library\n"
    program += f"{loader}load_pluggable_device_library(sys.argv[1])\n"
    assert run([sys.executable, "-c", program, tmp_path / "init.so"]).returncode == 3


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
            tools = ["setuptools>=77", "pytest"]
            pip = [made[version], "-m", "pip", "install", "-q", f"tensorflow-cpu=={version}"]
            subprocess.run([*pip, *tools], check=True)
        return made[version]

    return make


def wheel(project: Path, python: str, cxx: list[str]) -> Path:
    """The wheel of the project, which has the tag that the page promises."""
    pip = [python, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "."]
    done = run(pip, cwd=project, env={**os.environ, "CXX": shlex.join(cxx)})
    assert done.returncode == 0, done.stdout + done.stderr
    [built] = project.glob("clip_rows-1.0-py3-none-linux_*.whl")
    return built


def run_tests(built: Path, python: str, site: Path) -> subprocess.CompletedProcess[str]:
    """Runs the project's tests with a wheel, which is unpacked to `site`."""
    shutil.unpack_archive(built, site, "zip")
    env = {**os.environ, "PYTHONPATH": str(site)}
    return run([python, "-m", "pytest", "-q"], cwd=built.parent, env=env)


@pytest.fixture(scope="module")
def oldest(pythons, tmp_path_factory, cxx) -> Path:
    """The wheel built with the oldest TensorFlow."""
    project = copy_project(tmp_path_factory.mktemp("oldest") / "project")
    return wheel(project, pythons(VERSIONS[0]), cxx)


@pytest.mark.slow
@pytest.mark.downloads("versions of tensorflow-cpu")
def test_one_binary_runs_on_each_version(oldest: Path, python: str, tmp_path) -> None:
    done = run_tests(oldest, python, tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.downloads("versions of tensorflow-cpu")
def test_without_the_name_of_tensorflows_library(tmp_path, pythons, python, cxx) -> None:
    """The oldest version does not find its functions, the newer ones do, as the page says."""
    project = copy_project(tmp_path / "nameless")
    setup = (project / "setup.py").read_text()
    assert TENSORFLOW in setup
    (project / "setup.py").write_text(setup.replace(TENSORFLOW, "[]"))
    done = run_tests(wheel(project, pythons(VERSIONS[0]), cxx), python, tmp_path / "site")
    if python == pythons(VERSIONS[0]):
        assert "undefined symbol: TF_DeleteTensor" in done.stdout
    else:
        assert done.returncode == 0, done.stdout
