"""Finds what is wrong with the libraries of a wheel for Windows, with wine in place of Windows."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

import lief
from targets import Target

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = ROOT / "cc" / "tf" / "windows" / "tensorflow_api.cc"  # names what the library calls
INFERENCE_LIBRARY = "libtf_lstm_ops_inference.so"  # needs nothing of TensorFlow
TENSORFLOW = "_pywrap_tensorflow_common.dll"
OF_WINDOWS = re.compile(r"KERNEL32\.dll|api-ms-win-crt-[\w-]+\.dll")

LOADER = """
#include <stdio.h>
#include <windows.h>
int main(int count, char** paths) {
  for (int n = 1; n < count; ++n) {
    if (!LoadLibraryA(paths[n])) return printf("error %lu\\n", GetLastError()), 1;
  }
  return 0;
}
"""


def problems(target: Target, libraries: list[Path]) -> list[str]:
    """What is wrong with the libraries, a sentence each."""
    found = []
    for path in libraries:
        binary = lief.PE.parse(str(path))
        if binary.header.machine != lief.PE.Header.MACHINE_TYPES.AMD64:
            found.append(f"{path.name} is for {binary.header.machine}")
        foreign = [i.name for i in binary.imports if not OF_WINDOWS.fullmatch(i.name)]
        found += [f"{path.name} needs {name}" for name in foreign]
        exported = [entry.name for entry in binary.get_export().entries]
        if not exported or not all(name.startswith("tf_lstm_ops_") for name in exported):
            found.append(f"{path.name} exports {exported}")
        if error := load(target, [path], with_tensorflow=True):
            found.append(f"{path.name} does not load: {error}")
        error = load(target, [path], with_tensorflow=False)
        if path.name == INFERENCE_LIBRARY and error:
            found.append(f"{path.name} does not load without TensorFlow: {error}")
        if path.name != INFERENCE_LIBRARY and not error:
            found.append(f"{path.name} loads without TensorFlow's functions")
    return found


def load(target: Target, libraries: list[Path], with_tensorflow: bool) -> str:
    """Loads libraries under wine, beside a stand-in for TensorFlow or without.

    Returns:
      The error, or nothing.
    """
    gcc = f"{target.gcc}gcc"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "loader.c").write_text(LOADER)
        subprocess.run([gcc, "loader.c", "-o", "loader.exe"], cwd=folder, check=True)
        paths = [str(path) for path in libraries]
        if with_tensorflow:
            (folder / "stub.c").write_text(stub_source())
            subprocess.run([gcc, "-shared", "stub.c", "-o", TENSORFLOW], cwd=folder, check=True)
            paths = [TENSORFLOW, *paths]
        environment = {**os.environ, "WINEDEBUG": "-all", "WINEPREFIX": str(folder / "wine")}
        done = subprocess.run(
            [target.emulator, "loader.exe", *paths],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        subprocess.run(["wineserver", "--wait"], env=environment, check=False)
    return "" if done.returncode == 0 else done.stdout.decode(errors="replace").strip() or "?"


def stub_source() -> str:
    """A C program's text with TensorFlow's functions, which return 0 or a pointer to something."""
    lines = ["static char empty[64];"]
    for name in re.findall(r"F\((\w+)\)", FUNCTIONS.read_text()):
        value = "0" if name == "TF_GetCode" else "empty"
        lines.append(f"__declspec(dllexport) void* {name}(void) {{ return {value}; }}")
    return "\n".join(lines) + "\n"
