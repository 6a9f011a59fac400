"""The platforms that a release has wheels for, and the tools that each needs."""

from __future__ import annotations

import platform
import shutil
from typing import NamedTuple


class Target(NamedTuple):
    """A platform.

    Attributes:
      tag: the platform tag of the wheel.
      system, machine: what platform.system() and platform.machine() return there.
      compiler: the script that stands for the compiler, from the root, and its options.
      gcc: the prefix of the commands of GNU's compiler for it, which the stream libraries, libgcc
        and the check that a library loads need; empty if nothing of that applies.
      emulator: what runs its programs for the check, unless this machine does.
      linker: the linker, if it is not zig's.
    """

    tag: str
    system: str
    machine: str
    compiler: list[str]
    gcc: str = ""
    emulator: str = ""
    linker: str = ""

    @property
    def processor(self) -> str:
        """The name that GNU uses."""
        return {"arm64": "aarch64", "AMD64": "x86_64"}.get(self.machine, self.machine)

    @property
    def runner(self) -> list[str]:
        """What runs a program of the platform on this machine, before the program's name."""
        if not self.emulator or self.processor == platform.machine():
            return []
        return [self.emulator, "-L", f"/usr/{self.gcc.rstrip('-')}"]


ZIG_CXX, MACOS_CXX = "scripts/release/zig_cxx.py", "scripts/macos/cxx.py"
TARGETS = {
    target.tag: target
    for target in (
        Target(
            tag="manylinux_2_28_x86_64",
            system="Linux",
            machine="x86_64",
            compiler=[ZIG_CXX, "x86_64-linux-gnu.2.28"],
            gcc="x86_64-linux-gnu-",
        ),
        Target(
            tag="manylinux_2_28_aarch64",
            system="Linux",
            machine="aarch64",
            compiler=[ZIG_CXX, "aarch64-linux-gnu.2.28"],
            gcc="aarch64-linux-gnu-",
            emulator="qemu-aarch64-static",
        ),
        Target(
            tag="macosx_13_0_arm64",
            system="Darwin",
            machine="arm64",
            compiler=[MACOS_CXX],
            linker="ld64.lld-19",
        ),
        Target(  # experimental: it has not run on Windows
            tag="win_amd64",
            system="Windows",
            machine="AMD64",
            compiler=[ZIG_CXX, "x86_64-windows-gnu"],
            gcc="x86_64-w64-mingw32-",
            emulator="wine",
        ),
    )
}
# Debian's package with a tool.
PACKAGES = {
    "x86_64-linux-gnu-g++": "g++",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
    "ld64.lld-19": "lld-19",
    "qemu-aarch64-static": "qemu-user-static",
    "wine": "wine",
    "x86_64-w64-mingw32-g++": "g++-mingw-w64-x86-64-posix",
}


def missing_tools(targets: list[Target]) -> list[str]:
    """The tools of some targets that this machine lacks, each with Debian's package."""
    needed = {f"{target.gcc}g++" for target in targets if target.gcc}
    needed |= {tool for target in targets for tool in (target.emulator, target.linker) if tool}
    return [f"{n} (apt install {PACKAGES[n]})" for n in sorted(needed) if not shutil.which(n)]
