"""The cross-compiled libraries for macOS: what they need and what they export.

Not run on hardware. The tests check what macOS' loader checks.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from metal import build, declarations, macho

pytestmark = pytest.mark.metal

FRAMEWORKS = {
    f"/System/Library/Frameworks/{name}.framework/Versions/{'C' if name == 'Foundation' else 'A'}/"
    f"{name}"
    for name in declarations.FRAMEWORKS
}
RUNTIMES = {"/usr/lib/libSystem.B.dylib", "/usr/lib/libc++.1.dylib"}
# Symbols of frameworks and their runtime, which no list on Linux has.
OBJECTIVE_C = {
    *("_NSClassFromString", "_MTLCreateSystemDefaultDevice", "___CFConstantStringClassReference"),
    *("_OBJC_EHTYPE_$_NSException", "___objc_personality_v0", "_objc_ehtype_vtable"),
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    for tool in ("ziglang", "setuptools"):
        if importlib.util.find_spec(tool) is None:
            pytest.fail(f"needs the package {tool} of PyPI")
    if shutil.which("ld64.lld-19") is None:
        pytest.fail("needs the package lld-19 of apt")
    folder = tmp_path_factory.mktemp("wheel")
    cache = str(tmp_path_factory.mktemp("zig"))
    done = subprocess.run(
        [sys.executable, str(build.ROOT / "scripts" / "macos" / "build_wheel.py"), str(folder)],
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "ZIG_GLOBAL_CACHE_DIR": cache},
        capture_output=True,
        text=True,
    )
    # Without the library for Metal the build only warns.
    assert done.returncode == 0 and "built without" not in done.stderr, done.stderr[-5000:]
    [path] = folder.glob("*.whl")
    assert re.fullmatch(r"tf_lstm_ops-.*-py3-none-macosx_13_0_arm64\.whl", path.name)
    return zipfile.ZipFile(path)


@pytest.fixture(scope="module")
def libraries(
    wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, macho.Library]:
    folder = tmp_path_factory.mktemp("libraries")
    names = [name for name in wheel.namelist() if name.endswith(".so")]
    return {Path(name).name: macho.read(Path(wheel.extract(name, folder))) for name in names}


def c_api_exports() -> set[str]:
    """The exports of TensorFlow's macOS wheels 2.18 to 2.21, with C's underscore."""
    lines = (build.HERE / "c_api_exports.txt").read_text().splitlines()
    return {f"_{name}" for line in lines if not line.startswith("#") for name in line.split()}


def libsystem_exports() -> set[str]:
    """The exports of macOS' libSystem, from zig's list."""
    folder = Path(importlib.util.find_spec("ziglang").origin).parent
    text = (folder / "lib" / "libc" / "darwin" / "libSystem.tbd").read_text()
    return set(re.findall(r"[\w$]+", text))


def from_elsewhere(symbols: set[str]) -> set[str]:
    """Symbols that neither macOS nor TensorFlow exports."""
    known = c_api_exports() | libsystem_exports() | OBJECTIVE_C
    owners = {
        m.owner for text in declarations.headers().values() for m in declarations.declared(text)
    }
    known |= {f"_OBJC_CLASS_$_{owner}" for owner in owners}
    runtime = r"_objc_(msgSend|alloc|alloc_init|opt_self|retain|release|autorelease)"
    runtime += r"|_objc_(autoreleasePool(Push|Pop)|begin_catch|end_catch|enumerationMutation)"
    runtime += r"|_objc_exception_throw"
    cxx = r"__Z\w+|___cxa_\w+|___gxx_personality_v0"
    return {s for s in symbols - known if not re.fullmatch(f"{runtime}|{cxx}", s)}


@pytest.mark.parametrize("name", ["tf_lstm_ops.so", build.FLAGS["METAL_LIBRARY"]])
def test_library(libraries, name):
    library = libraries[name]
    assert library.processor == macho.ARM64 and library.oldest_macos == "13.0"
    assert library.is_signed  # macOS loads no library for arm64 without a signature
    is_metal = name != "tf_lstm_ops.so"
    expected = FRAMEWORKS | RUNTIMES | {"/usr/lib/libobjc.A.dylib"} if is_metal else RUNTIMES
    assert set(library.needed) == expected
    assert from_elsewhere(library.undefined) == set()
    # Of TensorFlow, functions of the C API that each of 2.18 to 2.21 exports.
    used = {s for s in library.undefined if s.startswith(("_TF_", "_SE_", "_SP_", "_TSL_"))}
    assert "_TF_RegisterKernelBuilder" in used
    assert used - c_api_exports() == set()
    assert not {s for s in library.undefined if "tensorflow" in s or "tsl" in s}
    # No functions that libc++ has since LLVM 15 or later, and so not on macOS 13.
    newer = ("__hash_memory", "__libcpp_verbose_abort", "to_chars", "pmr", "__fs")
    assert [s for s in library.undefined if any(n in s for n in newer)] == []
    assert {s for s in library.exported if not s.startswith("_tf_lstm_ops_")} == set()


def test_wheel_has_the_package(wheel):
    names = set(wheel.namelist())
    for part in ("__init__.py", "_library.py", "_lib/tf_lstm_ops.so", "_lib/tf_lstm_ops_metal.so"):
        assert f"tf_lstm_ops/{part}" in names
    assert not [name for name in names if name.startswith(("tests/", "scripts/"))]


def test_a_foreign_function_is_noticed():
    """A function of a compiler's own library, as `__builtin_available` uses."""
    assert from_elsewhere({"___isPlatformVersionAtLeast", "_memcpy"}) == {
        "___isPlatformVersionAtLeast"
    }
