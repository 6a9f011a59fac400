"""Builds the C++ tests in *_test.cc with the package's own compiler flags and runs them."""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from built_once import built_once

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
SOURCES = sorted([*HERE.glob("*_test.cc"), HERE / "main.cc"])
TESTED_OF_CPU = [
    *("layer", "thread_count"),
    *(f"memory/{name}" for name in ("aligned_buffer", "call_memory", "huge_pages")),
    *(
        f"plan/{name}"
        for name in ("backward_plan", "backward_schedule", "forward_plan", "forward_schedule")
    ),
    *(f"plan/ways/{name}" for name in ("one_row", "one_step", "sequence")),
    *(
        f"processor/{name}"
        for name in ("caches", "int8_dots", "measured_rates", "processors", "text_file")
    ),
    "team/thread_team",
    *(f"weights/{name}" for name in ("hash_weights", "kept_weights")),
]
TESTED = ["cc/core", *(f"cc/backends/cpu/{name}.cc" for name in TESTED_OF_CPU)]
NAMES = [
    name
    for source in SOURCES
    for name in re.findall(r"^TEST\((\w+)\)", source.read_text(), flags=re.MULTILINE)
]
LONG = ["TeamForgetsWhatWasDoneManyPhasesAgo"]  # counts 2^32 phases


def package_build() -> ModuleType:
    """build_defs/native.py."""
    sys.path.insert(0, str(ROOT))
    try:
        from build_defs import native
    finally:
        sys.path.remove(str(ROOT))
    return native


def compiler() -> list[str]:
    return package_build().compiler()


def build(program: Path, options: list[str]) -> None:
    native = package_build()
    flags = [f for f in native.FLAGS["COPTS"] if f not in ("-O3", "-DNDEBUG", "-Icc")]
    sources = [
        file
        for tested in TESTED
        for file in ([ROOT / tested] if tested.endswith(".cc") else (ROOT / tested).glob("*.cc"))
    ]
    # One translation unit, because the standard library's headers take most of the time.
    unit = program.with_suffix(".cc")
    unit.write_text("".join(f'#include "{source}"\n' for source in [*sources, *SOURCES]))
    include = ["-I", str(ROOT / "cc"), "-I", str(HERE)]
    subprocess.run(
        [*native.compiler(), *flags, *options, *include, str(unit), "-o", str(program)],
        check=True,
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_once(tmp_path_factory, "core_test", lambda path: build(path, ["-O1"]))


def run(program: Path, name: str, emulator: Sequence[str] = ()) -> None:
    result = subprocess.run([*emulator, program, name], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "passed" in result.stdout


@pytest.mark.full
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.full) if n in LONG else n for n in NAMES]
)
def test_core(program: Path, name: str) -> None:
    run(program, name)


@pytest.mark.slow
def test_many_sparse_changes_of_weights(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_LSTM_OPS_HASH_CALLS", str(10**7))
    run(program, "SparseChangesDoNotCancel")


@pytest.mark.slow
@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_core_under_sanitizers(tmp_path: Path, sanitizer: str) -> None:
    program = tmp_path / "core_test"
    build(program, ["-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"])
    for name in NAMES:
        # ThreadSanitizer does not follow threads through a fork.
        if not (sanitizer == "thread" and "Fork" in name):
            run(program, name)
