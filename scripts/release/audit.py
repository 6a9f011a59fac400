"""Finds what is wrong with a wheel: its tag, its libraries' symbols, and whether they load.

    python audit.py FOLDER

checks SHA256SUMS of a release and each wheel in it. docs/reference/releases.md says what is
checked on which platform.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import archive
import audit_c_files
import audit_windows
import lief
from auditwheel.architecture import Architecture
from auditwheel.libc import Libc
from auditwheel.wheel_abi import analyze_wheel_abi
from targets import TARGETS, Target

TENSORFLOW = "libtensorflow_framework.so.2"  # is in the process before ours are loaded
STREAM = "tf_lstm_ops_cuda_stream_"  # a library of C++, loaded beside one version of TensorFlow
MACHO_ARM64 = "ARM64"


def problems(wheel: Path) -> list[str]:
    """What is wrong with a wheel, a sentence each."""
    tag = wheel.stem.split("-")[-1]
    if tag not in TARGETS:
        return [f"{wheel.name}: the tag must be of {[*TARGETS]}"]
    files = archive.read(wheel)
    described = re.findall(r"^Tag: (\S+)$", text_of(files, "WHEEL"), re.MULTILINE)
    found = [] if described == [f"py3-none-{tag}"] else [f"WHEEL has the tags {described}"]
    required = re.findall(r"^Requires-Dist: ([^;\n]+)$", text_of(files, "METADATA"), re.MULTILINE)
    if [re.match(r"[\w-]+", requirement)[0] for requirement in required] != ["numpy"]:
        found.append(f"it requires {required}, not NumPy alone")
    target = TARGETS[tag]
    found += audit_c_files.problems(target, files, wheel.name.split("-")[1])
    with tempfile.TemporaryDirectory() as folder:
        libraries = []
        for name in (n for n in files if n.endswith(".so")):
            path = Path(folder) / Path(name).name
            path.write_bytes(files[name])
            libraries.append(path)
        if not libraries:
            found.append("no native library")
        if target.system == "Linux":
            found += _linux(target, wheel, libraries)
        elif target.system == "Darwin":
            found += _macos(target, libraries)
        else:
            found += audit_windows.problems(target, libraries)
    return [f"{wheel.name}: {problem}" for problem in found]


def text_of(files: dict[str, bytes], name: str) -> str:
    """A file of the folder .dist-info."""
    return files[f"{archive.dist_info(files)}/{name}"].decode()


def _linux(target: Target, wheel: Path, libraries: list[Path]) -> list[str]:
    info = analyze_wheel_abi(
        Libc.GLIBC,
        Architecture(target.processor),
        wheel,
        frozenset([TENSORFLOW]),
        disable_isa_ext_check=False,
        allow_graft=False,
    )
    found = []
    earned = info.overall_policy.name
    if info.policies.get_policy_by_name(target.tag) > info.overall_policy:
        found.append(f"auditwheel gives it the tag {earned} only; {info.versioned_symbols}")
    return found + [f"{p.name} does not load: {e}" for p in libraries if (e := load(target, p))]


LOADER = """
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char** paths) {
  for (int n = 1; n < count; ++n) {
    if (!dlopen(paths[n], RTLD_NOW | RTLD_GLOBAL)) return puts(dlerror()), 1;
  }
  return 0;
}
"""


def load(target: Target, library: Path) -> str:
    """Loads a library beside a stand-in for TensorFlow that has the C API that the library uses.
    Another processor is emulated.

    Returns:
      The error, or nothing. A stream library is not loaded: it needs TensorFlow's C++ functions.
    """
    if library.name.startswith(STREAM):
        return ""
    binary = lief.ELF.parse(str(library))  # a reference to it must stay: lief does not hold one
    undefined = [s.name for s in binary.dynamic_symbols if s.shndx == 0]
    functions = [n for n in undefined if re.match(r"(TF|TSL|SE|SP)_\w+$", n)]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "loader.c").write_text(LOADER)
        (folder / "stub.c").write_text(stub_source(functions))
        gcc, stub = f"{target.gcc}gcc", str(folder / TENSORFLOW)
        shared = ["-shared", "-fPIC", f"-Wl,-soname,{TENSORFLOW}", "-o", stub]
        subprocess.run([gcc, str(folder / "stub.c"), *shared], check=True)
        loader = str(folder / "loader")
        subprocess.run([gcc, str(folder / "loader.c"), "-o", loader, "-ldl"], check=True)
        command = [*target.runner, loader, stub, str(library)]
        done = subprocess.run(command, stdout=subprocess.PIPE)
    if done.returncode == 0:
        return ""
    return f"status {done.returncode}, {done.stdout.decode(errors='replace').strip()}"


def stub_source(functions: list[str]) -> str:
    """A C program's text with functions that do nothing. Each returns 0 as a code, else an empty
    text or a pointer to something.
    """
    lines = ["static char empty[64];"]
    for name in functions:
        value = "0" if name == "TF_GetCode" else "empty"
        lines.append(f"void* {name}(void) {{ return {value}; }}")
    return "\n".join(lines) + "\n"


def _macos(target: Target, libraries: list[Path]) -> list[str]:
    """What macOS' loader would refuse, as far as the files say it. Nothing is loaded."""
    wanted = tuple(map(int, target.tag.split("_")[1:3]))
    found = []
    for path in libraries:
        universal = lief.MachO.parse(str(path))
        [binary] = universal
        oldest = tuple(binary.build_version.minos[:2])
        if binary.header.cpu_type.name != MACHO_ARM64:
            found.append(f"{path.name} is for {binary.header.cpu_type.name}")
        if oldest > wanted:
            found.append(f"{path.name} needs macOS {oldest}")
        if not binary.has_code_signature:
            found.append(f"{path.name} is not signed")
        needed = [
            library.name for library in binary.libraries if library.name != f"@rpath/{path.name}"
        ]
        found += [
            f"{path.name} needs {name}"
            for name in needed
            if not name.startswith(("/usr/lib/", "/System/Library/Frameworks/"))
        ]
    return found


def check_sums(folder: Path) -> list[str]:
    """What is wrong with SHA256SUMS."""
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    wanted = {line.split()[1]: line.split()[0] for line in lines}
    there = {p.name for p in folder.iterdir() if p.name.endswith((".whl", ".cdx.json", ".tar.gz"))}
    found = [f"{name} is not in SHA256SUMS" for name in sorted(there - set(wanted))]
    for name, digest in wanted.items():
        if name not in there:
            found.append(f"{name} is in SHA256SUMS, but not in the folder")
        elif hashlib.sha256((folder / name).read_bytes()).hexdigest() != digest:
            found.append(f"{name} does not have the hash in SHA256SUMS")
    return found


def main() -> int:
    folder = Path(sys.argv[1])
    wheels = sorted(folder.glob("*.whl"))
    found = check_sums(folder) if wheels else ["no wheels"]
    packages = [*wheels, *sorted(folder.glob("*.tar.gz"))]
    twine = [sys.executable, "-m", "twine", "check", "--strict", *map(str, packages)]
    if subprocess.run(twine, env={**os.environ, "NO_COLOR": "1"}).returncode:
        found.append("twine found something")
    for wheel in wheels:
        found += problems(wheel)
        print(f"{wheel.name}: checked", flush=True)
    print(*found, sep="\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
