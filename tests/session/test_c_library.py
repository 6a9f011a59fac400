"""The C library of sessions as a file: what it needs and exports, and its header."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from session import c_library as c

INCLUDE = Path(__file__).resolve().parents[2] / "include"
FUNCTION = re.compile(r"^TF_LSTM_OPS_API [\w\s*]+?\b(tf_lstm_ops_\w+)\(", re.MULTILINE)
C_RUNTIME = re.compile(r"(libc|libm|libpthread|libdl|ld-linux[\w-]*)\.so\.\d+")

elf = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads ELF files")


def readelf(*options: str) -> str:
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed (it is part of binutils)")
    command = ["readelf", "-W", *options, str(c.path())]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@elf
def test_needs_the_c_runtime_only():
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", readelf("-d"))
    assert needed and [name for name in needed if not C_RUNTIME.fullmatch(name)] == []
    assert not re.search(r"\((RPATH|RUNPATH)\)", readelf("-d"))


@elf
def test_exports_the_functions_of_the_header():
    rows = [line.split() for line in readelf("--dyn-syms").splitlines()]
    symbols = [row for row in rows if len(row) >= 8 and row[0].rstrip(":").isdigit()]
    exported = {row[7] for row in symbols if row[6] != "UND"}
    declared = {*FUNCTION.findall((INCLUDE / "tf_lstm_ops.h").read_text())}
    assert exported == declared != set()


@elf
def test_the_static_library_defines_the_functions_of_the_header_only():
    """And needs nothing of the C++ library. What it needs is of libc, libm and libgcc."""
    archive = c.path().with_suffix(".a")
    if not archive.exists() or shutil.which("nm") is None:
        pytest.skip("no static library, or no nm (it is part of binutils)")
    command = ["nm", "--extern-only", "--format=posix", str(archive)]
    table = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    head, *rows = table.splitlines()
    assert head.endswith("[tf_lstm_ops_inference.o]:")  # the only member
    symbols = {name: kind for name, kind, *_ in map(str.split, rows)}
    declared = {*FUNCTION.findall((INCLUDE / "tf_lstm_ops.h").read_text())}
    of_layers = {name for name in declared if name.startswith("tf_lstm_ops_layer_")}
    assert {name for name, kind in symbols.items() if kind not in "Uw"} == declared - of_layers
    assert of_layers
    needed = [name for name, kind in symbols.items() if kind == "U"]
    assert [name for name in needed if name.startswith(("_Z", "__cxa_throw", "__gxx"))] == []
    assert "malloc" in needed


@elf
def test_the_static_library_keeps_static_constructors():
    """Nothing refers to them. One of libstdc++ reserves memory for the exception of no memory."""
    archive = c.path().with_suffix(".a")
    if not archive.exists() or b"GCC: (" not in archive.read_bytes():
        pytest.skip("no static library, or not of GCC and libstdc++")
    if shutil.which("readelf") is None:
        pytest.skip("readelf is not installed (it is part of binutils)")
    command = ["readelf", "-SW", str(archive)]
    sections = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.search(r"\] \.init_array +INIT_ARRAY", sections)


@pytest.mark.parametrize(("language", "standard"), [("c", "c11"), ("c++", "c++17")])
def test_the_header_is_c_and_cxx(language, standard):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    options = ["-x", language, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    command = [compiler, *options, "-fsyntax-only", "-I", str(INCLUDE), "-"]
    program = "#include <tf_lstm_ops.h>\nint main(void) { return tf_lstm_ops_api_version(); }\n"
    result = subprocess.run(command, input=program, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@elf
@pytest.mark.full
def test_the_shared_library_has_less_than_7_4_megabytes():
    """With all instruction sets, as GCC 12 compiles them. Others may need a little more.

    Layers take 4.5 of it: both passes of each cell in float and double. A library of sessions only
    does not have them. The kernels of int8 take 0.28: both formats of each instruction set. The two
    sets with products of bfloat16 take 0.8: a forward pass of each cell.
    """
    assert c.path().stat().st_size < 7_400_000
