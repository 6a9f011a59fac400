"""Bazel builds what setup.py builds, with the same flags."""

import ast
import json
import os
import shutil
import subprocess
import sys

import pytest

NEEDS_BAZEL = pytest.mark.skipif(shutil.which("bazel") is None, reason="Bazel is not installed")


def strings(tree: ast.AST) -> set[str]:
    return {
        n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    }


@pytest.fixture(scope="module")
def flags(native) -> set[str]:
    """Names of the lists that both builds take from flags.bzl."""
    return {name for name in native.FLAGS if name.isupper()}


def test_bazel_uses_every_list(root, flags):
    tree = ast.parse((root / "build_defs" / "native.bzl").read_text())
    loaded = set()
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "load":
            file, *names = (ast.literal_eval(argument) for argument in call.args)
            loaded.update(names if file == ":flags.bzl" else [])
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    of_setup = (
        *("METAL_", "MACOS_", "WINDOWS_"),
        *("SESSIONS_ONLY_", "STRICT_", "INSTRUMENT_", "SANITIZE_", "COVERAGE_", "ARCHIVE_"),
    )
    of_both = {name for name in flags if not name.startswith(of_setup)}
    assert loaded == of_both
    assert of_both <= used


def test_setup_uses_every_list(root, native, flags):
    files = ("native.py", "inference/c_files.py")
    tree = ast.parse("".join((root / "build_defs" / name).read_text() for name in files))
    # The LINKOPTS name the files of exported symbols, which Bazel must know as an input. Sources
    # that libraries share are in the list of each library; Bazel makes a target of them.
    exports = {"EXPORTS_LINUX", "INFERENCE_EXPORTS_LINUX"}
    assert flags - strings(tree) == {*exports, "CPU_SOURCES", "GPU_SHARED_SOURCES"}
    for name in exports:
        options = native.FLAGS[name.replace("EXPORTS", "LINKOPTS")]
        assert any(native.FLAGS[name] in option for option in options)


def test_neither_adds_flags_of_its_own(root):
    # A compiler's options; those of the program native.py itself begin with two lines.
    own = {
        name: {
            s
            for s in strings(ast.parse((root / name).read_text()))
            if s.startswith("-") and not s.startswith("--")
        }
        for name in (
            *("BUILD", "build_defs/native.bzl", "build_defs/native.py", "setup.py"),
            "build_defs/inference/c_files.py",
        )
    }
    assert own == {
        "BUILD": set(),
        "build_defs/native.bzl": set(),
        "build_defs/native.py": {"-MD", "-MF", "-c", "-o", "-shared", "-fsanitize="},
        "setup.py": set(),
        "build_defs/inference/c_files.py": {"-o"},
    }


@pytest.fixture(scope="module")
def bazel(root, tmp_path_factory):
    """Runs Bazel on the checkout; leaves no files in it, and no server."""
    output = tmp_path_factory.mktemp("bazel")
    command = ["bazel", f"--output_user_root={output}"]
    environment = os.environ | {"PYTHON_BIN_PATH": sys.executable}

    def run(*arguments: str) -> str:
        result = subprocess.run(
            [*command, *arguments], cwd=root, env=environment, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    yield run
    run("shutdown")


@pytest.mark.slow
@NEEDS_BAZEL
def test_bazel_compiles_with_the_same_flags(bazel, native):
    query = bazel("aquery", "mnemonic(CppCompile, deps(//:all))", "--output=jsonproto")
    commands = [action["arguments"] for action in json.loads(query)["actions"]]
    compiled = {}
    for arguments in commands:
        source = arguments[arguments.index("-c") + 1]
        level = "".join(a for a in arguments if a.startswith(native.FLAGS["SIMD_DEFINE"]))
        compiled[source, level] = arguments
    machine = os.uname().machine
    expected = {
        (unit.source, unit.flags[-1] if "SIMD" in unit.flags[-1] else ""): unit.flags
        for f in (native.units, native.cuda_units, native.inference_units)
        for unit in f(machine)
    }
    compiled.pop((native.FLAGS["STUB_SOURCE"], ""))
    assert compiled.keys() == expected.keys()
    for unit, flags in expected.items():
        assert [flag for flag in flags if flag not in compiled[unit]] == [], unit


@pytest.mark.slow
@NEEDS_BAZEL
def test_bazel_build_and_test(bazel):
    options = ["--symlink_prefix=/", "--noshow_progress"]
    bazel("build", *options, "//...")
    assert "PASSED" in bazel("test", *options, "//tests:smoke_test")
