"""A C++ and Objective-C++ compiler for arm64 macOS binaries on Linux.

Accepts the clang options of the package's build. Compiles with ziglang's clang, its macOS headers,
and our own declarations of Apple's frameworks. Links with ld64.lld. An undeclared selector is an
error. Needs ``pip install ziglang==0.17.0`` and ``apt install lld-19``.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DECLARATIONS = ROOT / "tests" / "metal"
OLDEST_MACOS = "13.0"
LINKER = "ld64.lld-19"

# Apple's table of libc++ functions by macOS version, which zig disables. Without it the headers use
# functions that only the newest libc++ has.
AVAILABILITY = "_LIBCPP_HAS_VENDOR_AVAILABILITY_ANNOTATIONS"
OBJECTIVE_C = [
    *("-Werror=objc-method-access", "-Werror=undeclared-selector"),
    *(f"-I{DECLARATIONS / folder}" for folder in ("include", "include_macos")),
]
LIBRARIES = {"libSystem": "/usr/lib/libSystem.B.dylib", "libc++": "/usr/lib/libc++.1.dylib"}
RUNTIME = {"libobjc": "/usr/lib/libobjc.A.dylib"}
FRAMEWORK = "/System/Library/Frameworks/{0}.framework/Versions/{1}/{0}"
VERSIONS = {"Foundation": "C"}  # A for all others

# The name of a library without its symbols, which the loader looks up by name.
STUB = """--- !tapi-tbd
tbd-version: 4
targets: [ arm64-macos ]
install-name: '{}'
exports: []
...
"""


def compile_command(options: list[str]) -> list[str]:
    zig = [sys.executable, "-m", "ziglang", "c++", "-target", f"aarch64-macos.{OLDEST_MACOS}"]
    extra = OBJECTIVE_C if any(option.endswith(".mm") for option in options) else []
    named = (_processor_for_zig(o) for o in options if o != f"-mmacosx-version-min={OLDEST_MACOS}")
    return [*zig, f"-U{AVAILABILITY}", f"-D{AVAILABILITY}=1", *extra, *named]


def _processor_for_zig(option: str) -> str:
    """-march=armv8.2-a+bf16 as -mcpu=generic+v8_2a+bf16: zig has no names of architectures."""
    architecture = re.fullmatch(r"-march=armv(\d+)\.(\d+)-a(.*)", option)
    if not architecture:
        return option
    major, minor, features = architecture.groups()
    return f"-mcpu=generic+v{major}_{minor}a{features}"


def link_command(options: list[str], folder: Path) -> list[str]:
    platform = ["-arch", "arm64", "-platform_version", "macos", OLDEST_MACOS, OLDEST_MACOS]
    platform += ["-S"]  # no debug map: it has the temporary paths of the objects
    found = list(_linker_options(options))
    frameworks = [found[k + 1] for k, option in enumerate(found) if option == "-framework"]
    libraries = {**LIBRARIES, **(RUNTIME if frameworks else {})}
    for name in frameworks:
        path = folder / f"{name}.framework" / f"{name}.tbd"
        path.parent.mkdir(exist_ok=True)
        path.write_text(STUB.format(FRAMEWORK.format(name, VERSIONS.get(name, "A"))))
    for name, install_name in libraries.items():
        (folder / f"{name}.tbd").write_text(STUB.format(install_name))
    stubs = [str(folder / f"{name}.tbd") for name in libraries]
    return [LINKER, *platform, "-dylib", f"-F{folder}", *found, *stubs]


def _linker_options(options: list[str]) -> Iterator[str]:
    for option in options:
        if option.startswith("-Wl,"):
            yield from option.split(",")[1:]
        elif option not in ("-shared", "-pthread", f"-mmacosx-version-min={OLDEST_MACOS}"):
            yield option


def main() -> int:
    options = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        if "-shared" in options:
            return subprocess.call(link_command(options, Path(folder)))
        cache = os.environ.get("ZIG_GLOBAL_CACHE_DIR", folder)
        environment = {
            **os.environ,
            "ZIG_GLOBAL_CACHE_DIR": cache,
            "ZIG_LOCAL_CACHE_DIR": cache,
        }
        return subprocess.call(compile_command(options), env=environment)


if __name__ == "__main__":
    sys.exit(main())
