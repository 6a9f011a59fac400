"""Builds the C++ tests in simd/ for each instruction set of this processor and runs them: packing
and the product kernels by themselves, with odd sizes and unaligned arrays. Those of int8 also run
for Arm, under an emulator of processors with and without instructions for dot products."""

import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from built_once import built_once
from tf_lstm_ops import _library

from .test_core import HERE, ROOT, package_build, run

SOURCES = sorted([*HERE.glob("simd/*_test.cc"), HERE / "main.cc"])
TESTED = ROOT / "cc/backends/cpu/processor/int8_dots.cc"


def names(*sources: Path) -> list[str]:
    texts = "".join(source.read_text() for source in sources)
    return re.findall(r"^TEST\((\w+)\)", texts, flags=re.MULTILINE)


NAMES = names(*SOURCES)
NAMES_OF_QUADS = names(HERE / "simd/quads_test.cc")
INSTRUCTION_SETS = [name.replace("-", "_") for name in _library.cpu_info()["instruction_sets"]]
# The last set once more, with emulated tiles of bfloat16; see simd/tiles.h.
TILES = " with emulated tiles"
# The instructions of AVX-VNNI, encoded as those of AVX-512.
VNNI = " with encoded AVX-VNNI"
AVX2 = "x86_64_v3"
# The instructions for tiles, where amx_processor.cc can run them.
AMX, AVX512 = "x86_64_v4_amx", "x86_64_v4"
RUNS_AMX = sys.platform == "linux" and AVX512 in INSTRUCTION_SETS and AMX not in INSTRUCTION_SETS
CASES = [
    *([AMX] if RUNS_AMX else []),
    *([AVX2 + VNNI] if sys.platform == "linux" and AVX512 in INSTRUCTION_SETS else []),
    *INSTRUCTION_SETS,
    INSTRUCTION_SETS[-1] + TILES,
]


# Processors of Arm with and without dot products of int8.
ARM_PROCESSORS = ["max", "cortex-a72"]
CROSS_COMPILER = "aarch64-linux-gnu-g++"
EMULATOR = "qemu-aarch64-static"


def build(program: Path, case: str, options: list[str], compiler: list[str] | None = None) -> None:
    instruction_set, vnni = case.removesuffix(TILES).removesuffix(VNNI), case.endswith(VNNI)
    tiles = case.endswith(TILES)
    native = package_build()
    flags = native.FLAGS
    sets = flags["SIMD_X86_64"] | flags["SIMD_OTHER"] | flags["SIMD_ARM64_TOO"]
    copts = [f for f in flags["COPTS"] if f not in ("-O3", "-DNDEBUG", "-Icc")]
    copts += [*sets[instruction_set], flags["SIMD_DEFINE"] + instruction_set]
    if tiles:  # without the instructions
        copts = [*(f for f in copts if not f.startswith("-mamx")), "-DTF_LSTM_OPS_TILES"]
    unit = program.with_suffix(".cc")  # one, as in test_core.py
    sources = [TESTED, *SOURCES, *([HERE / "amx_processor.cc"] if case == AMX else [])]
    unit.write_text("".join(f'#include "{source}"\n' for source in sources))
    include = ["-I", str(ROOT / "cc"), "-I", str(HERE)]
    compiler = compiler or native.compiler()
    assembly = program.with_suffix(".s")
    compiles = [*compiler, *copts, *options, *include, str(unit)]
    if vnni:
        subprocess.run([*compiles, "-DTF_LSTM_OPS_ENCODES_VNNI", "-S", "-o", assembly], check=True)
        text = assembly.read_text()
        assert "{vex} vpdpbusd" in text
        assembly.write_text(text.replace("{vex} vpdpbusd", "{evex} vpdpbusd"))
        compiles = [*compiler, "-pthread", str(assembly)]
    subprocess.run([*compiles, "-o", str(program)], check=True)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    @functools.cache
    def built(case: str) -> Path:
        name = f"simd_test of {case}"
        return built_once(tmp_path_factory, name, lambda path: build(path, case, ["-O1"]))

    return built


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_simd(program: Callable[[str], Path], case: str, name: str) -> None:
    run(program(case), name)


@pytest.mark.slow
def test_quads_of_arm(tmp_path: Path) -> None:
    if not (shutil.which(CROSS_COMPILER) and shutil.which(EMULATOR)):
        pytest.skip(f"needs {CROSS_COMPILER} and {EMULATOR}")
    path = tmp_path / "simd_test"
    build(path, "baseline", ["-O1", "-static"], [CROSS_COMPILER])
    for processor in ARM_PROCESSORS:
        for name in NAMES_OF_QUADS:
            run(path, name, [EMULATOR, "-cpu", processor])


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES[-2:])
def test_simd_under_sanitizers(tmp_path: Path, case: str) -> None:
    path = tmp_path / "simd_test"
    options = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    build(path, case, options)
    for name in NAMES:
        run(path, name)
