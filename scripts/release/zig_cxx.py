"""A C++ compiler for the libraries of the Linux and the Windows wheels.

Accepts the options of the package's build. Compiles and links with ziglang's clang. libc++ becomes
a part of each library, so the libraries need only the C library of the system. The first argument
is zig's name of the platform, such as x86_64-linux-gnu.2.28, for glibc 2.28, or x86_64-windows-gnu.
Needs ``pip install ziglang``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile

# What zig's linker does anyway, or what it does not know.
NOT_FOR_ZIG = {"-pthread"}
# The compilers whose libgcc has what __builtin_cpu_supports reads, which zig does not have.
GCC = {"x86_64-linux": "g++", "x86_64-windows": "x86_64-w64-mingw32-g++"}


def command(target: str, options: list[str]) -> list[str]:
    """The command of zig for a command line of the package's build."""
    zig = [sys.executable, "-m", "ziglang", "c++", "-target", target]
    if "-shared" in options and "-nostdlib" not in options:
        zig += ["-Wl,-s"]  # no symbols but the exported ones
        options = [*options, *cpu_model(target)]
        if "windows" in target:
            zig += ["-Wl,/Brepro"]  # a hash in place of the time
    return [*zig, *processor_options([o for o in options if o not in NOT_FOR_ZIG])]


def cpu_model(target: str) -> list[str]:
    """The libgcc that a library contains a part of; none for other processors."""
    gcc = GCC.get("-".join(target.split("-")[:2]))
    if gcc is None:
        return []
    return subprocess.run(
        [gcc, "-print-libgcc-file-name"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()


def processor_options(options: list[str]) -> list[str]:
    """Options with zig's -mcpu for -march, -mavx512 and -mamx: zig names no architectures."""
    kept, mcpu = [], ""
    for option in options:
        if arm := re.fullmatch(r"-march=armv(\d+)\.(\d+)-a((?:\+\w+)*)", option):
            mcpu = f"generic+v{arm[1]}_{arm[2]}a{arm[3]}"
        elif option.startswith("-march="):
            mcpu = option.removeprefix("-march=").replace("-", "_")
        elif option.startswith(("-mavx512", "-mamx")):
            mcpu += "+" + option.removeprefix("-m").replace("-", "_")
        else:
            kept.append(option)
    return [*([f"-mcpu={mcpu}"] if mcpu else []), *kept]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        cache = os.environ.get("ZIG_GLOBAL_CACHE_DIR", folder)
        caches = {"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
        return subprocess.call(command(sys.argv[1], sys.argv[2:]), env={**os.environ, **caches})


if __name__ == "__main__":
    sys.exit(main())
