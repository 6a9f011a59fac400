"""Builds the native library with a C++17 compiler and nothing else.

As a program, prints the compilation database that clang-tidy and editors read:
``python3 build_defs/native.py > compile_commands.json``.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import platform
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FLAGS: dict[str, Any] = runpy.run_path(str(ROOT / "build_defs" / "flags.bzl"))


class BuildError(Exception):
    """The library cannot be built; the message says why."""


class Unit(NamedTuple):
    """One compilation. Paths are relative to the root, so that objects do not depend on it."""

    source: str
    object: str
    flags: list[str]


def compiler() -> list[str]:
    """The C++ compiler: $CXX, which may hold options too, or the first one on the path."""
    if os.environ.get("CXX"):
        return shlex.split(os.environ["CXX"])
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise BuildError(
        "no C++ compiler found: install one that knows C++17 (GCC 11, Clang 12 or newer), "
        "for instance with 'apt install g++' or 'xcode-select --install', or name one in $CXX"
    )


def units(machine: str) -> list[Unit]:
    """All compilations for a machine such as "x86_64" or "arm64", in the order of linking."""
    x86_64 = _is_x86_64(machine)
    simd = dict(FLAGS["SIMD_X86_64"] if x86_64 else FLAGS["SIMD_OTHER"])
    if machine.lower() in ("arm64", "aarch64"):
        simd |= FLAGS["SIMD_ARM64_TOO"]
    baseline = FLAGS["COPTS"] + (FLAGS["COPTS_X86_64"] if x86_64 else [])
    simd_sources = _glob(FLAGS["SIMD_SOURCES"])
    sources = [s for s in _glob(FLAGS["SOURCES"]) if s not in simd_sources]
    return [Unit(s, _object(s), baseline) for s in sources] + [
        Unit(s, _object(s, name), [*FLAGS["COPTS"], *flags, FLAGS["SIMD_DEFINE"] + name])
        for name, flags in simd.items()
        for s in simd_sources
    ]


def metal_units() -> list[Unit]:
    """All compilations of the library of kernels for Metal."""
    return [
        Unit(s, _object(s, "metal"), FLAGS["COPTS"] + FLAGS["METAL_COPTS"] * s.endswith(".mm"))
        for s in _glob(FLAGS["METAL_SOURCES"])
    ]


def cuda_units(machine: str) -> list[Unit]:
    """All compilations of the library of kernels for CUDA."""
    flags = FLAGS["COPTS"] + (FLAGS["COPTS_X86_64"] if _is_x86_64(machine) else [])
    return [Unit(s, _object(s, "cuda"), flags) for s in _glob(FLAGS["CUDA_SOURCES"])]


def library_units(library: str, machine: str) -> list[Unit]:
    """All compilations of the library of this name."""
    if library == FLAGS["METAL_LIBRARY"]:
        return metal_units()
    if library == FLAGS["CUDA_LIBRARY"]:
        return cuda_units(machine)
    return units(machine)


def compile_command(unit: Unit, folder: Path) -> list[str]:
    return [*compiler(), *unit.flags, "-c", unit.source, "-o", str(folder / unit.object)]


def link_command(objects: list[str], folder: Path, output: Path, system: str) -> list[str]:
    command = [*compiler(), "-shared", *(str(folder / o) for o in objects), "-o", str(output)]
    if system == "Darwin":
        is_metal = output.name == FLAGS["METAL_LIBRARY"]
        return [*command, *FLAGS["METAL_LINKOPTS_MACOS" if is_metal else "LINKOPTS_MACOS"]]
    own = FLAGS["CUDA_LINKOPTS"] if output.name == FLAGS["CUDA_LIBRARY"] else []
    return [*command, *own, *FLAGS["LINKOPTS_LINUX"], str(folder / FLAGS["STUB"])]


def stub_command(folder: Path) -> list[str]:
    output = str(folder / FLAGS["STUB"])
    return [*compiler(), FLAGS["STUB_SOURCE"], *FLAGS["STUB_LINKOPTS"], "-o", output]


def build(output: Path, folder: Path, jobs: int | None = None) -> None:
    """Compiles and links the library `output` for this machine. CUDA's gets its sources for the
    stream beside it.

    Args:
      output: path of the library; of the one for Metal or CUDA where it has that name.
      folder: where the objects go; an absolute path.
      jobs: how many compilers run at once; as many as there are processors when None.

    Raises:
      BuildError: there is no compiler, or one of its runs failed.
    """
    todo = library_units(output.name, platform.machine())
    system = platform.system()
    folder.mkdir(parents=True, exist_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(jobs or _processors()) as pool:
        # From the end, since the SIMD units take by far the longest.
        list(pool.map(lambda unit: _run(compile_command(unit, folder)), reversed(todo)))
    if system != "Darwin":
        _run(stub_command(folder))
    _run(link_command([unit.object for unit in todo], folder, output.resolve(), system))
    if output.name == FLAGS["CUDA_LIBRARY"]:
        for source in _glob(FLAGS["CUDA_STREAM_SOURCES"]):
            shutil.copy(ROOT / source, output.parent)


def compilation_database() -> list[dict[str, Any]]:
    """An entry for each source: of those compiled several times, for the best instruction set."""
    machine = platform.machine()
    best = {unit.source: unit for unit in [*cuda_units(machine), *units(machine)]}
    return [
        {
            "directory": str(ROOT),
            "file": unit.source,
            "arguments": compile_command(unit, Path("objects")),
        }
        for unit in best.values()
    ]


def _is_x86_64(machine: str) -> bool:
    return machine.lower() in ("x86_64", "amd64")


def _glob(patterns: list[str]) -> list[str]:
    return sorted(
        p.relative_to(ROOT).as_posix() for pattern in patterns for p in ROOT.glob(pattern)
    )


def _object(source: str, variant: str = "") -> str:
    return "_".join([*Path(source).with_suffix("").parts, *([variant] if variant else [])]) + ".o"


def _processors() -> int:
    # Not os.cpu_count, which does not see that a container may use only some of them.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run(command: list[str]) -> None:
    line = shlex.join(command)
    print(line, flush=True)
    result = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = result.stdout.decode(errors="replace")
    sys.stdout.write(output)
    if result.returncode != 0:
        raise BuildError(
            f"this command failed with exit status {result.returncode}: {line}\n{output}"
        )


if __name__ == "__main__":
    print(json.dumps(compilation_database(), indent=2))
