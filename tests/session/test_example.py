"""examples/stream.c and what programs in C use of the package: its header, its libraries, and the
files for pkg-config and CMake, in a copy at another place.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import runpy
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from session import c_library as c
from session import chain, layers
from session import session_file as f
from session.test_c_library import C_RUNTIME

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "stream.c"
NAME = "tf_lstm_ops_inference"
BLOCK, COUNT = 16, 5
LANGUAGES = {"c": "c11", "c++": "c++17"}
STRICT = ["-pedantic", "-Wall", "-Wextra", "-Werror"]
CMAKE = f"""
cmake_minimum_required(VERSION 3.16)
project(example LANGUAGES C)
find_package({NAME} 0.1 REQUIRED)
add_executable(shared stream.c)
target_link_libraries(shared PRIVATE tf_lstm_ops::inference m)
if(TARGET tf_lstm_ops::inference_static)
  add_executable(static stream.c)
  target_link_libraries(static PRIVATE tf_lstm_ops::inference_static)
endif()
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """A copy of what the package has for C, in a folder with a space in its name."""
    spec = importlib.util.find_spec("tf_lstm_ops")
    installed = Path(spec.origin).parent
    if not (installed / "include").exists():
        pytest.skip("the package has no files for C (as under Bazel)")
    copy = tmp_path_factory.mktemp("an installation") / "tf_lstm_ops"
    shutil.copytree(installed / "include", copy / "include")
    ignored = shutil.ignore_patterns("tf_lstm_ops*.so", "stream.*")
    shutil.copytree(installed / "_lib", copy / "_lib", ignore=ignored)
    return copy


@pytest.fixture(scope="module")
def compiler() -> list[str]:
    native = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
    try:
        return native["compiler"]()
    except native["BuildError"] as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    rng = np.random.default_rng(54)
    path = tmp_path_factory.mktemp("file") / "model.bin"
    path.write_bytes(f.write(model(rng)))
    return path


def model(rng: np.random.Generator) -> list[f.Layer]:
    return [
        layers.recurrent(rng, f.LSTM, 2, 12),
        layers.recurrent(rng, f.GRU, 12, 9),
        f.Layer(
            f.DENSE,
            *(9, 3),
            activation="tanh",
            arrays=[{"kernel": rng.standard_normal((9, 3)).astype(np.float32)}],
        ),
    ]


def parsed(path: Path) -> dict[str, str]:
    """The fields and the variables of a file of pkg-config, for a check without that program."""
    found = {"pcfiledir": shlex.quote(str(path.parent))}
    for line in path.read_text().splitlines():
        if match := re.fullmatch(r"(\w+)(=|: )(.*)", line):
            found[match[1]] = re.sub(r"\$\{(\w+)\}", lambda m: found[m[1]], match[3])
    return found


def options(package: Path, name: str, how: str) -> list[str]:
    """What a program is compiled and linked with, by the file `name`."""
    folder = package / "_lib" / "pkgconfig"
    if not (folder / f"{name}.pc").exists():
        pytest.skip("the package has no static library")
    if how == "parsed":
        fields = parsed(folder / f"{name}.pc")
        return shlex.split(f"{fields['Cflags']} {fields['Libs']}")
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    done = subprocess.run(
        ["pkg-config", "--cflags", "--libs", name],
        env={**os.environ, "PKG_CONFIG_PATH": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return shlex.split(done.stdout)


def build(compiler: list[str], language: str, linked: list[str], program: Path) -> Path:
    source = ["-x", language, f"-std={LANGUAGES[language]}", *STRICT, str(EXAMPLE), "-x", "none"]
    command = [*compiler, *source, *linked, "-lm", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return program


def run(program: Path, package: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs a program that finds the shared library by a variable."""
    return subprocess.run(
        [str(program), *map(str, arguments)],
        env={**os.environ, "LD_LIBRARY_PATH": str(package / "_lib")},
        capture_output=True,
        text=True,
    )


def signal(features: int) -> np.ndarray:
    """The input of the program, [1, T, I], by the same functions of the C library."""
    step = 2 * math.pi * 440 / 48000
    return np.array(
        [
            [
                [0.5 * math.sin(step * (feature + 1) * n) for feature in range(features)]
                for n in range(BLOCK * COUNT)
            ]
        ],
        np.float32,
    )


def checksum(y: np.ndarray) -> float:
    """Of the outputs in the order of computation, in float64, added one by one."""
    total = 0.0
    for k, value in enumerate(y.ravel().tolist()):
        total += value * (k % 31 + 1)
    return total


def check(printed: str, file: Path) -> None:
    """Compares a program's output with a stream in Python and with the oracle."""
    head, times, last = printed.splitlines()
    assert head.startswith(f"{COUNT} blocks of {BLOCK} steps with ")
    number = r"(\d+\.\d\d)"
    percentiles = re.fullmatch(
        rf"us a block: p50 {number}, p90 {number}, p99 {number}, max {number}", times
    )
    assert [*map(float, percentiles.groups())] == sorted(map(float, percentiles.groups()))
    x, stream = signal(2), c.Stream(c.Session(c.load(c.path()), file))
    y = np.concatenate([stream(block) for block in np.split(x, COUNT, axis=1)], axis=1)
    got = float(last.removeprefix("checksum: "))
    assert got == checksum(y)
    want, _ = chain.run(model(np.random.default_rng(54)), x, None)
    # Outputs of the order of 1 with float32's errors of 1e-6, each times 31 or less.
    assert abs(got - checksum(want)) <= want.size * 31 * 1e-6
    assert abs(got) > 1


@pytest.mark.parametrize("how", ["parsed", "pkg-config"])
@pytest.mark.parametrize("library", [NAME, f"{NAME}_static"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_compiled_by_pkg_config(compiler, package, file, tmp_path, language, library, how):
    linked = options(package, library, how)
    program = build(compiler, language, linked, tmp_path / "stream")
    done = run(program, package, file, BLOCK, COUNT)
    assert (done.returncode, done.stderr) == (0, "")
    check(done.stdout, file)


@pytest.mark.parametrize("number", [0, 1])
def test_commands_of_the_readme(compiler, package, file, tmp_path, number):
    """One links the static library, the other one the shared library."""
    if shutil.which("pkg-config") is None:
        pytest.skip("pkg-config is not installed")
    readme = (ROOT / "examples" / "README.md").read_text()
    commands = re.findall(r"^cc (.* stream\.c .*)$", readme, re.MULTILINE)
    assert len(commands) == 2
    if "_static" in commands[number]:
        options(package, f"{NAME}_static", "parsed")
    place = tmp_path / "place"  # a path without a space, for the shell's $(...)
    shutil.copytree(package, place / "tf_lstm_ops")
    libraries = place / "tf_lstm_ops" / "_lib"
    paths = {"LIB": str(libraries), "PKG_CONFIG_PATH": str(libraries / "pkgconfig")}
    shutil.copy(EXAMPLE, tmp_path)
    command = f"{shlex.join([*compiler, '-x', 'c'])} {commands[number]}"
    command = command.replace(" stream.c ", " stream.c -x none ")
    subprocess.run(command, shell=True, cwd=tmp_path, env={**os.environ, **paths}, check=True)
    done = subprocess.run(
        [str(tmp_path / "stream"), str(file), str(BLOCK), str(COUNT)],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    check(done.stdout, file)


@pytest.mark.full
def test_compiled_by_cmake(package, file, tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("CMake is not installed")
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    where = f"-D{NAME}_DIR={package / '_lib' / 'cmake' / NAME}"
    for command in (["-S.", "-Bbuild", where], ["--build", "build"]):
        done = subprocess.run(["cmake", *command], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    kinds = ["shared", *["static"] * (package / "_lib" / f"lib{NAME}.a").exists()]
    for kind in kinds:
        done = run(tmp_path / "build" / kind, package, file, BLOCK, COUNT)
        assert (done.returncode, done.stderr) == (0, "")
        check(done.stdout, file)
    if "static" in kinds:
        assert_needs_the_c_runtime_only(tmp_path / "build" / "static")


def assert_needs_the_c_runtime_only(program: Path) -> None:
    """No library of the compiler, which a small image of a container may lack."""
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed (it is part of binutils)")
    dynamic = subprocess.check_output(["readelf", "-dW", str(program)], text=True)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    assert needed and [name for name in needed if not C_RUNTIME.fullmatch(name)] == []


@pytest.mark.parametrize("how", ["parsed", "pkg-config"])
def test_a_static_program_needs_the_c_runtime_only(package, file, tmp_path, how):
    """Compiled by the C compiler: that of C++ names its own library."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    linked = options(package, f"{NAME}_static", how)
    program = build(["cc"], "c", linked, tmp_path / "stream")
    assert_needs_the_c_runtime_only(program)
    check(run(program, package, file, BLOCK, COUNT).stdout, file)


def test_cmake_refuses_another_version(package, tmp_path):
    if shutil.which("cmake") is None:
        pytest.skip("CMake is not installed")
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.replace(f"{NAME} 0.1", f"{NAME} 9.1"))
    shutil.copy(EXAMPLE, tmp_path)
    where = f"-D{NAME}_DIR={package / '_lib' / 'cmake' / NAME}"
    command = ["cmake", "-S.", "-Bbuild", where]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode != 0 and "9.1" in done.stderr


def test_the_version_is_the_packages(package):
    version = runpy.run_path(str(ROOT / "tf_lstm_ops" / "_version.py"))["__version__"]
    files = [*(package / "_lib" / "pkgconfig").iterdir()]
    assert files and all(parsed(path)["Version"] == version for path in files)
    cmake = package / "_lib" / "cmake" / NAME / f"{NAME}-config-version.cmake"
    assert f'set(PACKAGE_VERSION "{version}")' in cmake.read_text()
    assert (package / "include" / "tf_lstm_ops.h").read_bytes() == (
        ROOT / "include" / "tf_lstm_ops.h"
    ).read_bytes()


@pytest.fixture(scope="module")
def program(compiler, package, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    return build(compiler, "c", options(package, NAME, "parsed"), folder / "stream")


NO_MEMORY = """
#include <stdio.h>
#include <tf_lstm_ops.h>
int main(int argc, char** argv) {
  tf_lstm_ops_session* session = NULL;
  tf_lstm_ops_stream* stream = NULL;
  if (argc != 2 || tf_lstm_ops_session_open(argv[1], NULL, &session, NULL)) return 1;
  printf("%d\\n", (int)tf_lstm_ops_stream_open(session, INT64_C(1) << 40, &stream, NULL));
  tf_lstm_ops_session_close(session);
  return 0;
}
"""


def test_exceptions_in_the_static_library(compiler, package, file, tmp_path):
    """No memory is an exception of C++ inside of the library."""
    linked = options(package, f"{NAME}_static", "parsed")
    (tmp_path / "program.c").write_text(NO_MEMORY)
    source = ["-x", "c", str(tmp_path / "program.c"), "-x", "none"]
    command = [*compiler, *source, *linked, "-o", str(tmp_path / "program")]
    subprocess.run(command, check=True)
    done = run(tmp_path / "program", package, file)
    assert (done.returncode, done.stdout) == (0, f"{c.RESOURCE_EXHAUSTED}\n")


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        ([], 2, "usage: stream FILE [BLOCK [COUNT]]"),
        (["FILE", "0"], 2, "BLOCK must be a number from 1 to 65536, got 0"),
        (["FILE", "1", "2x"], 2, "COUNT must be a number from 1 to 10000000, got 2x"),
        (["missing.bin"], 1, "cannot open the session: the file cannot be read: "),
        (["BACKWARDS"], 1, "cannot open a stream: "),
    ],
)
def test_errors(program, package, file, tmp_path, arguments, status, text):
    backwards = tmp_path / "backwards.bin"
    layer = layers.recurrent(np.random.default_rng(0), f.LSTM, 2, 3, directions=f.BACKWARDS)
    backwards.write_bytes(f.write([layer]))
    paths = {"FILE": file, "BACKWARDS": backwards}
    done = run(program, package, *[paths.get(argument, argument) for argument in arguments])
    assert (done.returncode, done.stdout) == (status, "")
    assert text in done.stderr


def test_the_last_step_of_a_block(program, package, tmp_path):
    """A model that returns no sequence has one output for each block."""
    path = tmp_path / "last.bin"
    layer = layers.recurrent(np.random.default_rng(0), f.LSTM, 2, 3, flags=0)
    path.write_bytes(f.write([layer]))
    stream = c.Stream(c.Session(c.load(c.path()), path))
    y = np.stack([stream(block) for block in np.split(signal(2), COUNT, axis=1)])
    done = run(program, package, path, BLOCK, COUNT)
    assert done.stdout.splitlines()[-1] == f"checksum: {checksum(y):.17g}", done.stderr
