"""What the built libraries need, export and execute, as their ELF files say."""

import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import tensorflow as tf

from tf_lstm_ops import _library

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads ELF files")

TENSORFLOW = "libtensorflow_framework.so.2"
C_AND_CXX = re.compile(r"(libc|libm|libpthread|libstdc\+\+|libgcc_s|ld-linux[\w-]*)\.so\.\d+")
# Registers that x86-64-v2 does not have.
VECTORS = {"x86_64_v3": "ymm", "x86_64_v4": "zmm"}


LIBRARIES = [path for path in (_library.path(), _library.gpu_path()) if path]


@pytest.fixture(params=LIBRARIES, ids=lambda path: path.stem)
def library(request) -> Path:
    return request.param


def run(tool: str, *options: str, library: Path = LIBRARIES[0]) -> str:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed (it is part of binutils)")
    command = [tool, *options, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@functools.cache
def symbols(library: Path = LIBRARIES[0]) -> list[tuple[str, str]]:
    """(section, name) of the dynamic symbols; the section of an undefined one is UND."""
    table = run("readelf", "-W", "--dyn-syms", library=library)
    rows = [line.split() for line in table.splitlines()]
    return [(row[6], row[7]) for row in rows if len(row) >= 8 and row[0].rstrip(":").isdigit()]


def test_needs_tensorflow_and_the_c_and_cxx_runtime_only(library):
    dynamic = run("readelf", "-W", "-d", library=library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
    assert TENSORFLOW in needed
    assert [n for n in needed if n != TENSORFLOW and not C_AND_CXX.fullmatch(n)] == []


def test_names_no_folder_to_search_libraries_in(library):
    assert not re.search(r"\((RPATH|RUNPATH)\)", run("readelf", "-W", "-d", library=library))


def test_exports_what_its_headers_say(root):
    declared = set()
    for header in (root / "cc").rglob("*.h"):
        text = header.read_text()
        declared.update(re.findall(r"^TF_LSTM_OPS_EXPORT [\w* ]+?(\w+)\(", text, re.MULTILINE))
    exported = {name for section, name in symbols() if section != "UND"}
    assert exported == declared
    assert "tf_lstm_ops_instruction_set" in exported


def test_imports_what_the_header_declares(root, library):
    declarations = (root / "cc" / "tf" / "tensorflow_api.h").read_text()
    undefined = {name for section, name in symbols(library) if section == "UND"}
    imported = {name for name in undefined if name.startswith("TF_")}
    assert "TF_RegisterKernelBuilder" in imported
    assert [name for name in imported if not re.search(rf"\b{name}\(", declarations)] == []


OPTIONAL = re.compile(r"TF_LSTM_OPS_OPTIONAL [\w ]+? (TF_\w+)\(")


def test_loads_without_the_functions_that_are_optional(root, library):
    """The loader leaves a weak symbol null that no library has."""
    optional = {*OPTIONAL.findall((root / "cc" / "tf" / "tensorflow_api.h").read_text())}
    assert len(optional) == 5
    rows = [
        line.split() for line in run("readelf", "-W", "--dyn-syms", library=library).split("\n")
    ]
    weak = {row[7] for row in rows if row[4:5] == ["WEAK"] and row[7].startswith("TF_")}
    imported = {name for section, name in symbols(library) if section == "UND"}
    assert weak == optional & imported


PROGRAM = """
import numpy as np
import tensorflow as tf
import tf_lstm_ops

x = np.ones([2, 3, 4], "float32")
layer, stock = tf_lstm_ops.keras.LSTM(5), tf.keras.layers.LSTM(5)
layer(x), stock(x)
stock.set_weights(layer.get_weights())
np.testing.assert_allclose(layer(x), stock(x), rtol=1e-5)  # float32, sums of 9 terms
try:
    tf_lstm_ops.stock.override()
except RuntimeError as error:
    print(error)
"""


@pytest.mark.full
def test_runs_without_the_functions_that_are_optional(root, tmp_path):
    """In a copy that asks for other names. The table of dynamic names comes first in the file."""
    content = LIBRARIES[0].read_bytes()
    for name in OPTIONAL.findall((root / "cc" / "tf" / "tensorflow_api.h").read_text()):
        content = content.replace(f"\0{name}\0".encode(), f"\0{name[:-1]}0\0".encode(), 1)
    copy = tmp_path / "library" / LIBRARIES[0].name
    copy.parent.mkdir()
    copy.write_bytes(content)
    env = {**os.environ, "TF_LSTM_OPS_LIBRARY": str(copy)}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    assert "has no TF_KernelBuilder_Priority" in result.stdout
    assert "cannot register" not in result.stderr


def test_imports_what_one_of_tensorflows_libraries_has(library):
    """The other one is not always where a library can find it."""
    [framework] = Path(tf.sysconfig.get_lib()).glob(TENSORFLOW)
    defined = ctypes.CDLL(str(framework))  # which readelf would take seconds to list
    imported = {name for section, name in symbols(library) if section == "UND"}
    names = {name for name in imported if name.startswith("TF_")}
    assert [name for name in sorted(names) if not hasattr(defined, name)] == []
    assert not hasattr(defined, "TF_no_such_function")


def test_no_stack_is_executable(library):
    [flags] = re.findall(r"GNU_STACK.* (R\S*) +0x", run("readelf", "-W", "-l", library=library))
    assert "E" not in flags


@pytest.mark.full
def test_newer_instructions_stay_in_the_namespace_of_their_instruction_set():
    """Or the library would die with SIGILL on older processors."""
    if "X86-64" not in run("readelf", "-h"):
        pytest.skip("one instruction set only")
    users = {register: set() for register in VECTORS.values()}
    function = ""
    for line in run("objdump", "-d", "--no-show-raw-insn").splitlines():
        if line.endswith(">:"):
            function = line
        else:
            for register in users:
                if "%" + register in line:
                    users[register].add(function)
    assert any("x86_64_v3" in f for f in users["ymm"]), "the v3 engine was not compiled as such"
    assert any("x86_64_v4" in f for f in users["zmm"]), "the v4 engine was not compiled as such"
    assert [f for f in users["ymm"] if "x86_64_v3" not in f and "x86_64_v4" not in f] == []
    assert [f for f in users["zmm"] if "x86_64_v4" not in f] == []
