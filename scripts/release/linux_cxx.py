"""A C++ compiler for Linux wheels of the tag manylinux_2_28, for either processor.

Accepts the options of the package's build. Compiles and links with ziglang's clang for glibc 2.28.
libc++ becomes a part of each library, so the libraries need glibc only. The first argument is the
processor: x86_64 or aarch64. Needs ``pip install ziglang``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile

GLIBC = "2.28"
# What zig's linker does anyway, or what it does not know.
NOT_FOR_ZIG = {"-pthread"}


def command(processor: str, options: list[str]) -> list[str]:
    """The command of zig for a command line of the package's build."""
    zig = [sys.executable, "-m", "ziglang", "c++", "-target", f"{processor}-linux-gnu.{GLIBC}"]
    if "-shared" in options and "-nostdlib" not in options:
        zig += ["-Wl,-s"]  # no symbols but the exported ones
        options = [*options, *cpu_model(processor)]
    return [*zig, *processor_options([o for o in options if o not in NOT_FOR_ZIG])]


def cpu_model(processor: str) -> list[str]:
    """What __builtin_cpu_supports reads, which zig does not have: GCC's part of it."""
    if processor != "x86_64":
        return []
    return subprocess.run(
        ["g++", "-print-libgcc-file-name"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()


def processor_options(options: list[str]) -> list[str]:
    """Options with zig's -mcpu for -march and -mavx512bf16: zig has no names of architectures."""
    kept, mcpu = [], ""
    for option in options:
        if arm := re.fullmatch(r"-march=armv(\d+)\.(\d+)-a((?:\+\w+)*)", option):
            mcpu = f"generic+v{arm[1]}_{arm[2]}a{arm[3]}"
        elif option.startswith("-march="):
            mcpu = option.removeprefix("-march=").replace("-", "_")
        elif option.startswith("-mavx512"):
            mcpu += "+" + option.removeprefix("-m")
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
