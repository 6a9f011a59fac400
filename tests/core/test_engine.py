"""The engine without TensorFlow against the oracle: on every instruction set that this processor
has, NEON under an emulator, and AVX-512 with products of bfloat16 as far as AVX-512 goes: where the
processor lacks the one instruction, two multiply-adds stand in for it.

Slow for the compiler's sake: all of the engine for all instruction sets takes it minutes. What runs
by default, on the installed library, is test_instruction_sets.py.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tf_lstm_ops import _library

from .engine_case import Case, errors
from .engine_cases import make_cases
from .engine_program import NATIVE, Program, build
from .ulp import BOUND, FUNCTIONS, chunks, floats
from .ulp import errors as ulp_errors

pytestmark = pytest.mark.slow

INSTRUCTION_SETS = _library.cpu_info()["instruction_sets"]
AVX512, WITH_DOTS = "x86-64-v4", "x86-64-v4-bf16"
EMULATES_DOTS = AVX512 in INSTRUCTION_SETS and WITH_DOTS not in INSTRUCTION_SETS
BUILT_SETS = [*INSTRUCTION_SETS, *([WITH_DOTS] if EMULATES_DOTS else [])]
CROSS_COMPILER = "aarch64-linux-gnu-g++"
EMULATORS = ("qemu-aarch64-static", "qemu-aarch64")


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return make_cases()


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("native")
    compiler = NATIVE["compiler"]()
    program = build(compiler, platform.machine(), folder, [], EMULATES_DOTS)
    return Program([str(program)])


@pytest.fixture(scope="module")
def neon(tmp_path_factory: pytest.TempPathFactory) -> Program:
    emulator = next(filter(None, map(shutil.which, EMULATORS)), None)
    if not (emulator and shutil.which(CROSS_COMPILER)):
        pytest.skip(f"needs {CROSS_COMPILER} and {' or '.join(EMULATORS)}")
    program = build([CROSS_COMPILER], "arm64", tmp_path_factory.mktemp("neon"), ["-static"])
    return Program([emulator, str(program)])


# The best set that widens bfloat16: the test compiles it with emulated tiles.
WIDENS = [name for name in INSTRUCTION_SETS if not name.endswith(("bf16", "amx"))][-1]
AMX = "x86-64-v4-amx"


@pytest.fixture(scope="module")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("tiles")
    compiler = NATIVE["compiler"]()
    return Program([str(build(compiler, platform.machine(), folder, [], tiles=WIDENS))])


def check_results(program: Program, cases: list[Case], threads: int, instruction_set: str) -> None:
    used, results = program.run([case.given for case in cases], threads, instruction_set)
    assert used == instruction_set
    pairs = zip(cases, results, strict=True)
    wrong = [error for case, got in pairs for error in errors(case, got)]
    assert not wrong, "\n".join([f"{len(wrong)} results", *wrong[:20]])


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("instruction_set", BUILT_SETS)
def test_results(native: Program, cases: list[Case], instruction_set: str, threads: int) -> None:
    check_results(native, cases, threads, instruction_set)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("instruction_set", ["baseline", "armv8-bf16"])
def test_results_of_neon(
    neon: Program, cases: list[Case], instruction_set: str, threads: int
) -> None:
    check_results(neon, cases, threads, instruction_set)


def of_bits(cases: list[Case], bits: int) -> list[Case]:
    return [case for case in cases if case.given["bits"] == bits]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_by_emulated_tiles(tiles: Program, cases: list[Case], threads: int) -> None:
    check_results(tiles, cases, threads, WIDENS)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.skipif(WIDENS != AVX512, reason="needs AVX-512")
def test_results_by_tiles(tiles: Program, cases: list[Case], threads: int) -> None:
    """The instructions of AMX, run by the processor or by amx_processor.cc, have the bits of the
    emulation."""
    narrow = of_bits(cases, 16)
    check_results(tiles, narrow, threads, AMX)
    _, by_tiles = tiles.run([case.given for case in narrow], threads, AMX)
    _, emulated = tiles.run([case.given for case in narrow], 1, WIDENS)
    for a, b in zip(by_tiles, emulated, strict=True):
        for name in a:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)


@pytest.mark.parametrize("instruction_set", BUILT_SETS)
def test_bfloat16_is_multiplied_where_it_can_be(
    native: Program, cases: list[Case], instruction_set: str
) -> None:
    """Elsewhere its numbers are float's, and so are the bits of all results."""
    narrow = [case.given for case in of_bits(cases, 16)]
    wide = [{**given, "bits": 32} for given in narrow]
    _, multiplied = native.run(narrow, 2, instruction_set)
    _, widened = native.run(wide, 2, instruction_set)
    same = [
        a[name].tobytes() == b[name].tobytes()
        for a, b in zip(multiplied, widened, strict=True)
        for name in a
    ]
    assert all(same) == (instruction_set not in (WITH_DOTS, AMX))


def test_functions_of_neon(neon: Program) -> None:
    """Those of other instruction sets, of the installed library: test_math.py."""
    x = np.concatenate([floats(start, 4093) for start in chunks(4093)])
    _, [found] = neon.run([{"z": x}])
    worst = {name: ulp_errors(name, x, found[name]).max() for name in FUNCTIONS}
    assert max(worst.values()) <= BOUND, worst


def frozen_results(program: Program, instruction_set: str = "", processor: str = "") -> str:
    """What frozen_program prints, on a processor that the emulator has."""
    *emulator, path = program.command
    options = ["-cpu", processor] if processor else []
    done = subprocess.run(
        [*emulator, *options, Path(path).with_name("frozen_program")],
        capture_output=True,
        text=True,
        env={**os.environ, "TF_LSTM_OPS_SIMD": instruction_set},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert instruction_set in done.stderr
    return done.stdout


FUSED_SETS = [name for name in BUILT_SETS if name != "x86-64-v2"]


def test_int8_has_the_same_bits_on_all_sets(native: Program) -> None:
    """With a fused multiply-add. Rows and threads are compared by the program."""
    found = {name: frozen_results(native, name) for name in FUSED_SETS}
    assert len(set(found.values())) == 1
    if "x86-64-v2" in BUILT_SETS:
        least = frozen_results(native, "x86-64-v2")
        assert len(least.splitlines()) == len(found[FUSED_SETS[-1]].splitlines())


@pytest.mark.parametrize("processor", ["max", "cortex-a72"])
def test_int8_of_neon_has_the_bits_of_other_fused_sets(
    native: Program, neon: Program, processor: str
) -> None:
    """With dot products and without."""
    if platform.machine() != "x86_64" or not FUSED_SETS:
        pytest.skip("this processor has no fused multiply-add to compare with")
    here, there = frozen_results(native), frozen_results(neon, processor=processor)
    assert here.splitlines() == there.splitlines()


def test_neon_has_the_bits_of_other_fused_sets(
    native: Program, neon: Program, cases: list[Case]
) -> None:
    """Where both fuse multiply-adds; float64 calls exp and tanh of the C library, which differ."""
    if platform.machine() != "x86_64" or len(INSTRUCTION_SETS) < 2:
        pytest.skip("this processor has no fused multiply-add to compare with")
    given = [case.given for case in of_bits(cases, 32)]
    _, here = native.run(given, 2)
    _, there = neon.run(given, 2)
    for a, b in zip(here, there, strict=True):
        for name in a:
            np.testing.assert_array_equal(a[name], b[name], err_msg=name)
