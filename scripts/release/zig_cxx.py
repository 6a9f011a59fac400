"""A C++ compiler for the libraries of the Linux and the Windows wheels.

Accepts the options of the package's build. Compiles and links with ziglang's clang. libc++ becomes
a part of each library, so the libraries need only the C library of the system. The first argument
is zig's name of the platform, such as x86_64-linux-gnu.2.28, for glibc 2.28, or x86_64-windows-gnu.
GNU's linker makes the one object of a static library: zig does not take the option that dissolves
groups of sections. Needs ``pip install ziglang``.
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
# The compilers that call GNU's linker.
LINKERS = {"x86_64-linux": "g++", "aarch64-linux": "aarch64-linux-gnu-g++"}
LIBSTDCXX = "-l:libstdc++.a"
LIBCXX = ("libc++.a", "libc++abi.a")


def command(target: str, options: list[str]) -> list[str]:
    """The command of zig for a command line of the package's build."""
    zig = [sys.executable, "-m", "ziglang", "c++", "-target", target]
    if "-shared" in options and "-nostdlib" not in options:
        zig += ["-Wl,-s"]  # no symbols but the exported ones
        options = [*options, *cpu_model(target)]
        if "windows" in target:
            zig += ["-Wl,/Brepro"]  # a hash in place of the time
    return [*zig, *processor_options([o for o in options if o not in NOT_FOR_ZIG])]


def relocatable_command(target: str, options: list[str], folder: str) -> list[str]:
    """The command that links objects to one object, with libc++ in place of libstdc++.

    Args:
      target: zig's name of the platform.
      options: those of the package's build.
      folder: an empty folder.
    """
    at = options.index(LIBSTDCXX)
    libraries = libcxx(target, folder)
    return [LINKERS[_platform(target)], *options[:at], *libraries, *options[at + 1 :]]


def libcxx(target: str, folder: str) -> list[str]:
    """The archives of zig's libc++, whose paths zig prints when it links a library."""
    source, library = os.path.join(folder, "empty.cc"), os.path.join(folder, "empty.so")
    open(source, "w").close()
    zig = [sys.executable, "-m", "ziglang", "c++", "-target", target, "-v"]
    printed = subprocess.run(
        [*zig, "-shared", source, "-o", library], check=True, capture_output=True, text=True
    ).stderr
    found = {os.path.basename(word): word for word in printed.split()}
    return [found[name] for name in LIBCXX]


def _platform(target: str) -> str:
    return "-".join(target.split("-")[:2])


def cpu_model(target: str) -> list[str]:
    """The libgcc that a library contains a part of; none for other processors."""
    gcc = GCC.get(_platform(target))
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
        os.environ.update({"ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache})
        target, options = sys.argv[1], sys.argv[2:]
        if "-r" in options:
            return subprocess.call(relocatable_command(target, options, folder))
        return subprocess.call(command(target, options))


if __name__ == "__main__":
    sys.exit(main())
