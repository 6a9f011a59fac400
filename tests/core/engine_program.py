"""Builds engine_program.cc with the package's own flags, for any processor, and runs it."""

import os
import runpy
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

Arrays = dict[str, np.ndarray]

ROOT = Path(__file__).resolve().parents[2]
NATIVE = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
ENGINE = ("cc/core/", "cc/backends/cpu/")


class Program(NamedTuple):
    """A command that runs the program on this machine."""

    command: list[str]

    def run(
        self, cases: list[Arrays], threads: int = 1, instruction_set: str = ""
    ) -> tuple[str, list[Arrays]]:
        """The instruction set that was used, and the results of each case."""
        environment = {**os.environ, "TF_LSTM_OPS_SIMD": instruction_set}
        done = subprocess.run(
            [*self.command, str(threads)],
            input=b"".join(map(_write, cases)),
            capture_output=True,
            env=environment,
            timeout=1200,  # not a bound of the speed: a deadlock should end
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stderr.decode().strip(), _read(done.stdout)


BFLOAT16_DOTS = "-mavx512bf16"


def build(
    compiler: list[str],
    machine: str,
    folder: Path,
    link: list[str],
    emulates_dots: bool = False,
    tiles: str | None = None,
) -> Path:
    """Compiles for a machine as native.py calls it, with assertions, and links with more options.
    Beside it lies frozen_program.

    With `emulates_dots` the instruction set x86-64-v4-bf16 has all that it has but for the one
    instruction, for which two multiply-adds stand in. The instruction set `tiles` multiplies
    bfloat16 by emulated tiles. With it x86-64-v4-amx runs on every processor with AVX-512, by
    amx_processor.cc.
    """
    units = [u for u in NATIVE["units"](machine) if u.source.startswith(ENGINE)]
    flags = NATIVE["FLAGS"]["COPTS"]

    def run(*command: str) -> None:
        subprocess.run([*compiler, *command], cwd=ROOT, check=True)

    def compile_unit(unit) -> None:
        own = [flag for flag in unit.flags if not (emulates_dots and flag == BFLOAT16_DOTS)]
        own += ["-DTF_LSTM_OPS_EMULATES_DOTS"] * emulates_dots + ["-UNDEBUG"]
        if tiles:
            of_tiles = NATIVE["FLAGS"]["SIMD_DEFINE"] + tiles.replace("-", "_") in own
            own.append("-DTF_LSTM_OPS_TILES" if of_tiles else "-DTF_LSTM_OPS_ASSUMES_TILES")
        run(*own, "-c", unit.source, "-o", str(folder / unit.object))

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compile_unit, reversed(units)))  # the SIMD units take the longest
    objects = [str(folder / unit.object) for unit in units]
    if tiles and machine == "x86_64":
        amx = Path(__file__).with_name("amx_processor.cc")
        objects.append(str(folder / "amx_processor.o"))
        run(*flags, "-march=x86-64-v3", "-c", str(amx), "-o", objects[-1])
    for name in ("engine_program", "frozen_program"):
        source = str(Path(__file__).with_name(f"{name}.cc"))
        run(*flags, source, *objects, *link, "-o", str(folder / name))
    return folder / "engine_program"


def _write(arrays: Arrays) -> bytes:
    parts = []
    for name, values in arrays.items():
        numbers = np.asarray(values, "<f8").ravel()
        parts.append(f"{name} {numbers.size}\n".encode() + numbers.tobytes() + b"\n")
    return b"".join([*parts, b"end\n"])


def _read(text: bytes) -> list[Arrays]:
    found: list[Arrays] = [{}]
    at = 0
    while at < len(text):
        line_end = text.index(b"\n", at)
        line = text[at:line_end].decode()
        at = line_end + 1
        if line == "end":
            found.append({})
            continue
        name, count = line.split()
        found[-1][name] = np.frombuffer(text, "<f8", int(count), at)
        at += 8 * int(count) + 1
    return found[:-1]
