"""The files of the package for programs in C and C++ that use the library of sessions: the static
library, the header, and the files for pkg-config and CMake.

native.py runs this file.
"""

from __future__ import annotations

import os
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
NAME = "tf_lstm_ops_inference"


def build_archive(
    objects: list[Path],
    library: Path,
    linker: list[str],
    flags: dict[str, Any],
    run: Callable[[list[str]], None],
) -> bool:
    """Builds the static library beside the shared one. $OBJCOPY and $AR may name the tools. If a
    tool is missing or too old, a warning says so.

    Args:
      objects: those of the shared library, in the order of linking.
      library: the shared library.
      linker: the compiler's command, which links.
      flags: the lists of flags.bzl.
      run: runs a command. It raises RuntimeError if the command fails.

    Returns:
      Whether the static library was built.
    """
    archive = library.with_name(flags["ARCHIVE_LIBRARY"])
    archive.unlink(missing_ok=True)
    try:
        for command in archive_commands(objects, archive, linker, flags):
            run(command)
    except (RuntimeError, OSError) as error:
        print(f"warning: built without {archive.name}. The reason: {error}", file=sys.stderr)
        return False
    return True


def archive_commands(
    objects: list[Path], archive: Path, linker: list[str], flags: dict[str, Any]
) -> list[list[str]]:
    """The commands that build the static library from objects."""
    whole = objects[0].with_name(f"{NAME}_whole.o")
    member = objects[0].with_name(f"{NAME}.o")
    functions = flags["ARCHIVE_FUNCTIONS"]
    roots = [flags["ARCHIVE_ROOT"] + name for name in functions]
    kept = [flags["ARCHIVE_GLOBAL"] + name for name in functions]
    inputs = [*map(str, objects), *flags["ARCHIVE_RUNTIME"]]
    return [
        [*linker, *flags["ARCHIVE_LINKOPTS"], *roots, *inputs, "-o", str(whole)],
        [*_tool("objcopy"), *flags["ARCHIVE_WEAK_OPTS"], str(whole)],
        [*_tool("objcopy"), *flags["ARCHIVE_LOCAL_OPTS"], *kept, str(whole), str(member)],
        [*_tool("ar"), *flags["ARCHIVE_AR_OPTS"], str(archive), str(member)],
    ]


def _tool(name: str) -> list[str]:
    return shlex.split(os.environ.get(name.upper(), "")) or [name]


def write(libraries: Path, has_archive: bool) -> None:
    """Writes the header, and what pkg-config and CMake read.

    Args:
      libraries: the folder of the library in the package.
      has_archive: whether the static library is there too.
    """
    header = libraries.parent / "include" / "tf_lstm_ops.h"
    header.parent.mkdir(exist_ok=True)
    shutil.copyfile(ROOT / "include" / header.name, header)
    pkgconfig, static = libraries / "pkgconfig", f"{NAME}_static.pc"
    _write_template(f"{NAME}.pc", pkgconfig)
    if has_archive:
        _write_template(static, pkgconfig)
    else:
        (pkgconfig / static).unlink(missing_ok=True)
    for template in sorted(FOLDER.glob("*.cmake")):
        _write_template(template.name, libraries / "cmake" / NAME)


def _write_template(name: str, folder: Path) -> None:
    version = runpy.run_path(str(ROOT / "tf_lstm_ops" / "_version.py"))["__version__"]
    folder.mkdir(parents=True, exist_ok=True)
    text = (FOLDER / name).read_text(encoding="utf-8")
    (folder / name).write_text(text.replace("@VERSION@", version), encoding="utf-8")
