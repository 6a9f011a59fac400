"""Finds what is wrong with a wheel's files for programs in C: the header, the libraries of
sessions, and the files for pkg-config and CMake.
"""

from __future__ import annotations

import re
import runpy
import subprocess
import tempfile
from pathlib import Path

import lief
from targets import Target

ROOT = Path(__file__).resolve().parents[2]
FLAGS = runpy.run_path(str(ROOT / "build_defs" / "flags.bzl"))
FUNCTIONS = {*FLAGS["ARCHIVE_FUNCTIONS"]}
LIBRARY, ARCHIVE = FLAGS["INFERENCE_LIBRARY"], FLAGS["ARCHIVE_LIBRARY"]
HEADER = "include/tf_lstm_ops.h"
NAME = "tf_lstm_ops_inference"
CMAKE = f"_lib/cmake/{NAME}/{NAME}-config"
FILES = [HEADER, f"_lib/{LIBRARY}", f"_lib/pkgconfig/{NAME}.pc"]
FILES += [f"{CMAKE}.cmake", f"{CMAKE}-version.cmake"]
LINUX_FILES = [f"_lib/{ARCHIVE}", f"_lib/pkgconfig/{NAME}_static.pc"]

# Opens a file that does not exist: code 5.
PROGRAM = """
#include <tf_lstm_ops.h>
int main(void) {
  tf_lstm_ops_session* session = 0;
  return tf_lstm_ops_session_open("missing", 0, &session, 0) != 5;
}
"""


def problems(target: Target, files: dict[str, bytes], version: str) -> list[str]:
    """What is wrong, a sentence each.

    Args:
      target: the wheel's platform.
      files: those of the wheel by path.
      version: of the package.
    """
    inside = {name.removeprefix("tf_lstm_ops/"): data for name, data in files.items()}
    wanted = [*FILES, *LINUX_FILES * (target.system == "Linux")]
    if missing := [name for name in wanted if name not in inside]:
        return [f"it has no {name}" for name in missing]
    found = []
    if inside[HEADER] != (ROOT / HEADER).read_bytes():
        found.append(f"{HEADER} is not that of the checkout")
    for name in (name for name in wanted if name.endswith(".pc")):
        described = re.findall(r"^Version: (.*)$", inside[name].decode(), re.MULTILINE)
        if described != [version]:
            found.append(f"{name} has the versions {described}, not {version}")
    found += _exports(target, inside[f"_lib/{LIBRARY}"])
    if target.system == "Linux" and (error := _run_static(target, inside)):
        found.append(f"a program with {ARCHIVE} fails: {error}")
    return found


def _exports(target: Target, library: bytes) -> list[str]:
    """Whether the shared library exports the functions of the header and nothing else. On Windows
    it also exports those of the engine.
    """
    parsed = lief.parse(library)
    if target.system == "Windows":
        missing = FUNCTIONS - {entry.name for entry in parsed.get_export().entries}
        return [f"{LIBRARY} does not export {sorted(missing)}"] if missing else []
    prefix = "_" if target.system == "Darwin" else ""
    exported = {symbol.name.removeprefix(prefix) for symbol in parsed.exported_symbols}
    return [] if exported == FUNCTIONS else [f"{LIBRARY} exports {sorted(exported)}"]


def _run_static(target: Target, inside: dict[str, bytes]) -> str:
    """Links a program with the static library and runs it; another processor is emulated.

    Returns:
      The error, or nothing.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in (HEADER, f"_lib/{ARCHIVE}"):
            (folder / Path(path).name).write_bytes(inside[path])
        (folder / "program.c").write_text(PROGRAM)
        command = [f"{target.gcc}gcc", "-I.", "program.c", ARCHIVE, "-pthread", "-lm"]
        done = subprocess.run(
            [*command, "-o", "program"], cwd=folder, capture_output=True, text=True
        )
        if done.returncode == 0:
            run = [*target.runner, "./program"]
            done = subprocess.run(run, cwd=folder, capture_output=True, text=True)
    return f"status {done.returncode}, {done.stderr.strip()}" if done.returncode else ""
