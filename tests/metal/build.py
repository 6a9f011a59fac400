"""Builds for Linux the fake frameworks, two fake plugins and the Metal library, from the sources
that macOS compiles.

As a program: ``python build.py FOLDER`` writes libfake_frameworks.so, apple.so, host_address.so and
tf_lstm_ops_metal.so there. A file that is newer than its sources is not built again.
"""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(HERE.parent))  # as a program

from devices.build import is_older, tensorflow_folder  # noqa: E402

FLAGS: dict[str, Any] = runpy.run_path(str(ROOT / "build_defs" / "flags.bzl"))

PACKAGES = "clang-19 libblocksruntime-dev libgnustep-base-dev libobjc-12-dev"
COMPILER = ["clang++-19"]
GCC = "/usr/lib/gcc/x86_64-linux-gnu/12"  # where libobjc-12-dev is
# GCC's runtime has neither ARC nor subscripts; it has blocks.
OBJECTIVE_C = [
    *("-fobjc-runtime=gcc", "-fobjc-exceptions", "-fblocks"),
    *("-fconstant-string-class=NSConstantString", "-DGNUSTEP", "-D_NATIVE_OBJC_EXCEPTIONS"),
    *("-isystem", "/usr/include/GNUstep", "-isystem", f"{GCC}/include"),
    f"-I{HERE}/include",
]
# Apple's methods have parameters that the fakes ignore.
OWN = ["-std=c++17", "-O2", "-g", "-fPIC", f"-I{HERE}"]
OWN += ["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"]
# Selectors that no header declares are errors.
STRICT = ["-Werror=objc-method-access", "-Werror=undeclared-selector"]
GNUSTEP = [f"-L{GCC}", "-lgnustep-base", "-lobjc", "-lBlocksRuntime"]

FAKES = "libfake_frameworks.so"
PLUGINS = ("apple", "host_address")


def is_possible() -> bool:
    """Whether PACKAGES are installed."""
    return shutil.which(COMPILER[0]) is not None and Path("/usr/include/GNUstep").exists()


def build_fakes(folder: Path) -> Path:
    return _library(folder / FAKES, _sources("fake/*"), OWN, GNUSTEP)


def build_plugins(folder: Path) -> list[Path]:
    """The plugins of PLUGINS."""
    flags = [*OWN, "-isystem", str(tensorflow_folder() / "include")]
    near = [*_beside_fakes(folder), *_tensorflow()]
    return [
        _library(folder / f"{name}.so", _sources(f"plugins/{name}.*"), flags, near)
        for name in PLUGINS
    ]


def build_rules(folder: Path) -> Path:
    """The tests of the fake frameworks that are functions of rules.mm."""
    return _library(folder / "rules.so", _sources("rules.*"), OWN, _beside_fakes(folder))


def build_kernels(folder: Path, root: Path = ROOT) -> Path:
    """The Metal library, from the sources in a checkout."""
    sources = sorted(path for pattern in FLAGS["METAL_SOURCES"] for path in root.glob(pattern))
    output = folder / FLAGS["METAL_LIBRARY"]
    return _library(output, sources, metal_flags(root), [*_beside_fakes(folder), *_tensorflow()])


def build_broken_kernels(folder: Path, root: Path, right: str, wrong: str) -> Path:
    """The Metal library from a changed copy of the sources, which it makes."""
    shutil.copytree(ROOT / "cc", root / "cc")
    header = root / "cc" / "core" / "gate_order.h"
    assert right in header.read_text()
    header.write_text(header.read_text().replace(right, wrong))
    return build_kernels(folder, root)


def metal_flags(root: Path) -> list[str]:
    """setup.py's flags on macOS without those for Objective-C, with less optimisation."""
    shared = [f for f in FLAGS["COPTS"] if f not in ("-O3", "-Icc")]
    return [*shared, *FLAGS["STRICT_COPTS"], "-O1", "-g", f"-I{root}/cc"]


def objective_c_flags() -> list[str]:
    arc = "-fno-objc-arc"  # unknown with GCC's runtime, which has no ARC
    return [*OBJECTIVE_C, *STRICT, *(f for f in FLAGS["METAL_COPTS"] if f != arc)]


def _beside_fakes(folder: Path) -> list[str]:
    """Options that link with the fake frameworks in the same folder."""
    own = [f"-L{build_fakes(folder).parent}", "-lfake_frameworks", "-Wl,-rpath,$ORIGIN"]
    return [*own, *GNUSTEP]


def _tensorflow() -> list[str]:
    return [f"-L{tensorflow_folder()}", "-l:libtensorflow_framework.so.2"]


def _sources(pattern: str) -> list[Path]:
    return sorted(path for path in HERE.glob(pattern) if path.suffix in (".cc", ".mm"))


def _library(output: Path, sources: Iterable[Path], flags: list[str], link: list[str]) -> Path:
    output = output.resolve()
    output.parent.mkdir(parents=True, exist_ok=True)
    objects = [_object(source, output, flags) for source in sources]
    if is_older(output, objects):
        run([*COMPILER, "-shared", *map(str, objects), *link, "-o", str(output)])
    return output


def _object(source: Path, output: Path, flags: list[str]) -> Path:
    name = "_".join(source.with_suffix(".o").parts[-3:])  # of the same depth everywhere
    compiled = output.with_suffix(".objects") / name
    compiled.parent.mkdir(exist_ok=True)
    dependencies = compiled.with_suffix(".d")
    if is_older(compiled, _read_dependencies(dependencies)):
        language = objective_c_flags() if source.suffix == ".mm" else []
        options = ["-MMD", "-MF", str(dependencies), "-c", str(source), "-o", str(compiled)]
        run([*COMPILER, *flags, *language, *options])
    return compiled


def _read_dependencies(path: Path) -> list[Path]:
    if not path.exists():
        return [path]
    words = path.read_text().replace("\\\n", " ").split()
    return [Path(__file__), *(Path(word) for word in words if not word.endswith(":"))]


def run(command: list[str]) -> None:
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "LC_ALL": "C"})


if __name__ == "__main__":
    to = Path(sys.argv[1])
    print(build_fakes(to), *build_plugins(to), build_kernels(to), sep="\n")
