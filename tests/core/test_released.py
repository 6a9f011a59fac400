"""The core and the engine from the compiler of the wheels for other platforms, under emulators."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from .engine_case import Case
from .engine_cases import make_cases
from .engine_program import ROOT, Program, build
from .test_core import NAMES
from .test_core import build as build_core
from .test_engine import INSTRUCTION_SETS, check_results

pytestmark = pytest.mark.slow
CACHE = Path(os.environ.get("TF_LSTM_OPS_RELEASE_CACHE", "~/.cache/tf_lstm_ops_release"))
PYTHON = CACHE.expanduser() / "tools" / "bin" / "python"  # scripts/release/build makes it


class Platform(NamedTuple):
    """A platform that has a wheel, and this machine's emulator of it."""

    zig: str  # zig's name of it
    machine: str
    emulator: list[str]
    instruction_sets: list[str]
    libgcc: list[str]  # the command that prints what a program is linked with besides

    def compiler(self) -> list[str]:
        return [str(PYTHON), str(ROOT / "scripts" / "release" / "zig_cxx.py"), self.zig]

    def options(self) -> list[str]:
        if not self.libgcc:
            return []
        return subprocess.check_output(self.libgcc, text=True).split()


PLATFORMS = {
    "aarch64": Platform(
        zig="aarch64-linux-gnu.2.28",
        machine="aarch64",
        emulator=["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"],
        instruction_sets=["baseline", "armv8-bf16"],
        libgcc=[],
    ),
    "Windows": Platform(
        zig="x86_64-windows-gnu",
        machine="AMD64",
        emulator=["wine"],
        instruction_sets=INSTRUCTION_SETS,
        libgcc=["x86_64-w64-mingw32-g++", "-print-libgcc-file-name"],
    ),
}


@pytest.fixture(scope="module", params=PLATFORMS)
def platform(request, tmp_path_factory) -> Platform:
    found: Platform = PLATFORMS[request.param]
    needed = [str(PYTHON), found.emulator[0], *found.libgcc[:1]]
    if missing := [tool for tool in needed if not shutil.which(tool)]:
        pytest.skip(f"needs {' and '.join(missing)}; see docs/reference/releases.md")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINEDEBUG", "-all")
        patch.setenv("WINEPREFIX", str(tmp_path_factory.mktemp("wine")))
        patch.setenv("CXX", " ".join(found.compiler()))
        patch.setenv("ZIG_GLOBAL_CACHE_DIR", str(tmp_path_factory.mktemp("zig")))
        if found.emulator == ["wine"]:  # the first program in a new folder prints lines of wine's
            subprocess.run(["wine", "wineboot", "--init"], check=True, stderr=subprocess.DEVNULL)
        yield found


@pytest.fixture(scope="module")
def core(platform: Platform, tmp_path_factory) -> Path:
    program = tmp_path_factory.mktemp("core") / "core_test.exe"
    build_core(program, ["-O1", *platform.options()])
    return program


@pytest.mark.parametrize("name", NAMES)
def test_core(platform: Platform, core: Path, name: str) -> None:
    if "Fork" in name and platform.machine == "AMD64":
        pytest.skip("Windows has no fork")
    command = [*platform.emulator, str(core), name]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "passed" in result.stdout


@pytest.fixture(scope="module")
def engine(platform: Platform, tmp_path_factory) -> Program:
    folder = tmp_path_factory.mktemp("engine")
    program = build(platform.compiler(), platform.machine, folder, platform.options())
    return Program([*platform.emulator, str(program)])


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return make_cases()


@pytest.mark.parametrize("threads", [1, 3])
def test_engine(platform: Platform, engine: Program, cases: list[Case], threads: int) -> None:
    for instruction_set in platform.instruction_sets:
        check_results(engine, cases, threads, instruction_set)
