"""Builds the native libraries with a C++17 compiler and nothing else.

``python3 build_defs/native.py build`` brings the libraries of this checkout, as an editable
installation uses them, up to date: it compiles what changed since the last time. It uses ccache
where that is installed and $CXX is not set.

``python3 build_defs/native.py build --sanitize address,undefined`` builds the library without GPUs'
kernels with sanitizers and prints its path; ``--coverage`` builds it with counters for gcov. The
variable $TF_LSTM_OPS_LIBRARY makes the package load it.

With $TF_LSTM_OPS_SESSIONS_ONLY = 1 the only library is that of sessions.

``python3 build_defs/native.py > compile_commands.json`` writes the compilation database that
clang-tidy and editors read.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import json
import math
import os
import platform
import runpy
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FLAGS: dict[str, Any] = runpy.run_path(str(ROOT / "build_defs" / "flags.bzl"))
C_FILES: dict[str, Any] = runpy.run_path(str(ROOT / "build_defs" / "inference" / "c_files.py"))
# In this checkout: where Python finds the libraries, and where their objects stay between builds.
LIBRARIES = ROOT / "tf_lstm_ops" / "_lib"
OBJECTS = ROOT / ".build"


class BuildError(RuntimeError):
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
        "no C++ compiler found: install one that knows C++17 (GCC 11, Clang 13 or newer), "
        "for instance with 'apt install g++' or 'xcode-select --install', or name one in $CXX"
    )


def sessions_only() -> bool:
    """Whether the environment variable asks for the library of sessions only.

    Raises:
      BuildError: the variable has another value than 0 and 1.
    """
    name = FLAGS["SESSIONS_ONLY_VARIABLE"]
    value = os.environ.get(name) or "0"
    if value not in ("0", "1"):
        raise BuildError(f"the environment variable {name} must be 0 or 1, but is {value}")
    return value == "1"


def libraries(system: str) -> list[str]:
    """File names of the libraries that the package has on "Linux", "Darwin" or another system."""
    if sessions_only():
        return [FLAGS["INFERENCE_LIBRARY"]]
    gpu = {"Darwin": "METAL_LIBRARY", "Linux": "CUDA_LIBRARY"}.get(system)
    return [FLAGS["LIBRARY"], FLAGS["INFERENCE_LIBRARY"], *([FLAGS[gpu]] if gpu else [])]


def units(machine: str) -> list[Unit]:
    """All compilations for a machine such as "x86_64" or "arm64", in the order of linking."""
    return _with_simd(_baseline_units("SOURCES", machine), machine)


def inference_units(machine: str) -> list[Unit]:
    """All compilations of the library of sessions, in the order of linking."""
    session = [
        unit._replace(flags=unit.flags + FLAGS["SESSION_COPTS"])
        for unit in _baseline_units("SESSION_SOURCES", machine)
    ]
    found = _with_simd([*session, *_baseline_units("INFERENCE_SOURCES", machine)], machine)
    if not sessions_only():
        return found
    return [
        unit._replace(flags=[*FLAGS["SESSIONS_ONLY_COPTS"], *unit.flags])
        for unit in found
        if unit.source not in FLAGS["SESSIONS_ONLY_LEFT_OUT"]
    ]


def _with_simd(baseline: list[Unit], machine: str) -> list[Unit]:
    """Units, and behind them those of each instruction set."""
    simd = dict(FLAGS["SIMD_X86_64"] if _is_x86_64(machine) else FLAGS["SIMD_OTHER"])
    if machine.lower() in ("arm64", "aarch64"):
        simd |= FLAGS["SIMD_ARM64_TOO"]
    simd_sources = _glob(FLAGS["SIMD_SOURCES"])
    copts = FLAGS["COPTS"] + FLAGS["SIMD_COPTS"]
    return [u for u in baseline if u.source not in simd_sources] + [
        Unit(s, _object(s, name), [*copts, *flags, FLAGS["SIMD_DEFINE"] + name])
        for name, flags in simd.items()
        for s in simd_sources
    ]


def metal_units(machine: str) -> list[Unit]:
    """All compilations of the library of kernels for Metal."""
    return [
        unit._replace(flags=unit.flags + FLAGS["METAL_COPTS"] * unit.source.endswith(".mm"))
        for unit in _baseline_units("METAL_SOURCES", machine)
    ]


def cuda_units(machine: str) -> list[Unit]:
    """All compilations of the library of kernels for CUDA."""
    return _baseline_units("CUDA_SOURCES", machine)


def library_units(library: str, machine: str) -> list[Unit]:
    """All compilations of the library of this name. Libraries share units with the same object."""
    if library == FLAGS["METAL_LIBRARY"]:
        return metal_units(machine)
    if library == FLAGS["CUDA_LIBRARY"]:
        return cuda_units(machine)
    if library == FLAGS["INFERENCE_LIBRARY"]:
        return inference_units(machine)
    if platform.system() == "Windows":
        return [*_baseline_units("WINDOWS_SOURCES", machine), *units(machine)]
    return units(machine)


def compile_command(unit: Unit, folder: Path) -> list[str]:
    """Compiles a unit, and lists the files that it includes beside the object, in a file *.d."""
    output = folder / unit.object
    files = ["-MD", "-MF", str(output.with_suffix(".d"))]
    strict = FLAGS["STRICT_COPTS"] if os.environ.get(FLAGS["STRICT_VARIABLE"]) == "1" else []
    flags = [*unit.flags, *_platform_flags(platform.system()), *strict, *_instrument_flags(True)]
    return [*compiler(), *flags, *files, "-c", unit.source, "-o", str(output)]


def link_command(objects: list[str], folder: Path, output: Path, system: str) -> list[str]:
    command = [*compiler(), *_platform_flags(system), *_instrument_flags(False), "-shared"]
    command += [*(str(folder / o) for o in objects), "-o", str(output)]
    if system == "Darwin":
        own = {
            FLAGS["METAL_LIBRARY"]: FLAGS["METAL_LINKOPTS_MACOS"],
            FLAGS["INFERENCE_LIBRARY"]: FLAGS["INFERENCE_LINKOPTS_MACOS"],
        }
        options = own.get(output.name, FLAGS["LINKOPTS_MACOS"])
        return [*command, *options, FLAGS["MACOS_INSTALL_NAME"] + output.name]
    if system == "Windows":
        return command
    if output.name == FLAGS["INFERENCE_LIBRARY"]:
        return [*command, *FLAGS["INFERENCE_LINKOPTS_LINUX"]]
    return [*command, *FLAGS["LINKOPTS_LINUX"], str(folder / FLAGS["STUB"])]


def _platform_flags(system: str) -> list[str]:
    return FLAGS["MACOS_OPTS"] if system == "Darwin" else []


def _instrument_flags(is_compilation: bool) -> list[str]:
    """The options of a compilation or of a link for what the variable asks for, if it is set."""
    wanted = os.environ.get(FLAGS["INSTRUMENT_VARIABLE"])
    if not wanted:
        return []
    if wanted == "coverage":
        return FLAGS["COVERAGE_OPTS"]
    undefined = FLAGS["SANITIZE_UNDEFINED_OPTS"] if "undefined" in wanted.split(",") else []
    return [*FLAGS["SANITIZE_COPTS"] * is_compilation, f"-fsanitize={wanted}", *undefined]


def stub_command(folder: Path) -> list[str]:
    output = str(folder / FLAGS["STUB"])
    return [*compiler(), FLAGS["STUB_SOURCE"], *FLAGS["STUB_LINKOPTS"], "-o", output]


def build(outputs: Sequence[Path], folder: Path, jobs: int | None = None) -> None:
    """Compiles and links libraries for this machine. The sources of the stream library are copied
    beside the library for CUDA. Files for programs in C are written beside the library of sessions.

    A unit is compiled once for all libraries, and not at all where `folder` has its object from an
    earlier build and neither the command nor a file that it reads has changed since.

    Args:
      outputs: paths of the libraries, which have the names that `libraries` returns.
      folder: where the objects go; an absolute path.
      jobs: how many compilers run at once; as many as there are processors when None.

    Raises:
      BuildError: there is no compiler, or one of its runs failed.
    """
    machine, system = platform.machine(), platform.system()
    linked = {output: library_units(output.name, machine) for output in outputs}
    todo = {unit.object: unit for units in linked.values() for unit in units}
    folder.mkdir(parents=True, exist_ok=True)
    modified = functools.cache(_modified)
    with concurrent.futures.ThreadPoolExecutor(jobs or _processors()) as pool:
        compile_unit = functools.partial(_compile, folder=folder, modified=modified)
        list(pool.map(compile_unit, _longest_first(list(todo.values()))))
    if system not in ("Darwin", "Windows"):
        _run(stub_command(folder))
    for output, units in linked.items():
        output.parent.mkdir(parents=True, exist_ok=True)
        _run(link_command([unit.object for unit in units], folder, output.resolve(), system))
        if output.name == FLAGS["CUDA_LIBRARY"]:
            for source in _glob(FLAGS["CUDA_STREAM_SOURCES"]):
                shutil.copy(ROOT / source, output.parent)
        if output.name == FLAGS["INFERENCE_LIBRARY"]:
            objects = [folder / unit.object for unit in units]
            linker = [*compiler(), *_instrument_flags(False)]
            has_archive = system == "Linux" and C_FILES["build_archive"](
                objects, output.resolve(), linker, FLAGS, _run
            )
            C_FILES["write"](output.parent, has_archive)


def build_possible(outputs: Sequence[Path], folder: Path, jobs: int | None = None) -> list[Path]:
    """As `build`, but leaves out the library for Metal if its build fails: an SDK may be too old.

    Args:
      outputs, folder, jobs: those of `build`.

    Returns:
      The paths of the libraries that were built.

    Raises:
      BuildError: another library cannot be built.
    """
    metal = [output for output in outputs if output.name == FLAGS["METAL_LIBRARY"]]
    others = [output for output in outputs if output not in metal]
    if not metal:
        build(outputs, folder, jobs)
        return [*outputs]
    build(others, folder, jobs)
    try:
        build(metal, folder, jobs)
    except BuildError as error:
        print(
            f"warning: built without {FLAGS['METAL_LIBRARY']}, so no op runs on a Mac's GPU. "
            f"All ops run on the CPU. The reason: {error}",
            file=sys.stderr,
        )
        return others
    return [*outputs]


def build_checkout(jobs: int | None = None) -> None:
    """Brings the libraries in this checkout up to date, with ccache where that is installed and
    $CXX is not set, and removes those that are not wanted. Arguments and errors: those of
    `build_possible`.
    """
    _use_ccache()
    wanted = libraries(platform.system())
    for library in LIBRARIES.glob("*.so"):
        if library.name not in wanted:
            library.unlink()
    build_possible([LIBRARIES / name for name in wanted], OBJECTS, jobs)


def build_instrumented(wanted: str, jobs: int | None = None) -> Path:
    """Builds the library for the CPU for a check, in a folder of its own.

    Args:
      wanted: sanitizers separated by commas, or "coverage".
      jobs: as in `build`.

    Returns:
      The library. Its objects are beside it, with what gcov needs.

    Raises:
      BuildError: there is no compiler, or one of its runs failed.
    """
    os.environ[FLAGS["INSTRUMENT_VARIABLE"]] = wanted
    _use_ccache()
    folder = OBJECTS / wanted.replace(",", "_")
    build([folder / FLAGS["LIBRARY"]], folder, jobs)
    return folder / FLAGS["LIBRARY"]


def _use_ccache() -> None:
    if not os.environ.get("CXX") and shutil.which("ccache"):
        os.environ["CXX"] = shlex.join(["ccache", *compiler()])


def compilation_database() -> list[dict[str, Any]]:
    """An entry for each source: of those compiled several times, for the best instruction set."""
    machine = platform.machine()
    best = {
        unit.source: unit
        for unit in [*cuda_units(machine), *inference_units(machine), *units(machine)]
    }
    return [
        {
            "directory": str(ROOT),
            "file": unit.source,
            "arguments": compile_command(unit, Path("objects")),
        }
        for unit in best.values()
    ]


def _baseline_units(sources: str, machine: str) -> list[Unit]:
    """The sources in the list of this name, for any processor of the kind."""
    flags = FLAGS["COPTS"] + (FLAGS["COPTS_X86_64"] if _is_x86_64(machine) else [])
    return [Unit(source, _object(source), flags) for source in _glob(FLAGS[sources])]


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


def _longest_first(units: list[Unit]) -> list[Unit]:
    """Units in an order that leaves no processor idle at the end: those for each instruction set,
    the best one first, then the others by the size of their source.
    """

    def duration(unit: Unit) -> float:
        if FLAGS["SIMD_DEFINE"] in unit.flags[-1]:
            return math.inf
        return (ROOT / unit.source).stat().st_size

    return sorted(reversed(units), key=duration, reverse=True)


def _compile(unit: Unit, folder: Path, modified: Callable[[Path], float]) -> None:
    """Compiles a unit into a folder, unless its object there is up to date."""
    command = compile_command(unit, folder)
    output = folder / unit.object
    record = output.with_suffix(".txt")  # the command, written when the object is complete
    if record.exists() and output.exists() and record.read_text() == shlex.join(command):
        files = [unit.source, *_included(output.with_suffix(".d")), *_embedded(unit)]
        if all(modified(ROOT / file) <= modified(output) for file in files):
            return
    record.unlink(missing_ok=True)
    begin = time.time()
    _run(command)
    os.utime(output, (begin, begin))  # so that a file that changed meanwhile is newer
    record.write_text(shlex.join(command))


def _modified(file: Path) -> float:
    """The time of the last change; for a file that is gone, later than any other."""
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return math.inf


def _included(file: Path) -> list[str]:
    """The prerequisites in a makefile rule that a compiler has written."""
    return shlex.split(file.read_text().replace("\\\n", " "))[1:]


def _embedded(unit: Unit) -> list[str]:
    """Files that the assembler reads, which no compiler lists."""
    if ".incbin" not in (ROOT / unit.source).read_text():
        return []
    return _glob([*FLAGS["CUDA_TEXTS"], "cc/**/*.h"])


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


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", nargs="?", choices=["build"])
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--sanitize", metavar="KINDS", help="such as address,undefined or thread")
    kind.add_argument("--coverage", action="store_true", help="with counters for gcov")
    parsed = parser.parse_args(arguments)
    instrument = "coverage" if parsed.coverage else parsed.sanitize
    if instrument and parsed.command != "build":
        parser.error("--sanitize and --coverage are options of the command build")
    if instrument:
        print(build_instrumented(instrument))
    elif parsed.command == "build":
        build_checkout()
    else:
        print(json.dumps(compilation_database(), indent=2))


if __name__ == "__main__":
    main(sys.argv[1:])
