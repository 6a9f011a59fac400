"""Our declarations of CUDA's libraries against NVIDIA's own headers, which TensorFlow's stock wheel
has: one that differs does not compile."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from cuda import build

API = build.ROOT / "cc" / "backends" / "cuda" / "api"
# Ours and NVIDIA's.
HEADERS = {
    "driver.h": "cuda.h",
    "nvrtc.h": "nvrtc.h",
    "cublas.h": "cublas_v2.h",
    "cudnn.h": "cudnn.h",
}
FUNCTION = re.compile(r"^[\w ]+?[ *]((?:cu|nvrtc)\w+)\(", re.MULTILINE)


GPUS = Path(str(find_spec("tensorflow").origin)).parent / "include" / "third_party" / "gpus"
FOLDERS = [
    *(GPUS / "cuda" / "include", GPUS / "cudnn" / "include", GPUS),
    GPUS / "cuda" / "libcudacxx" / "include",
]
pytestmark = pytest.mark.skipif(
    not (FOLDERS[0] / "cuda.h").exists(), reason="tensorflow-cpu comes without NVIDIA's headers"
)


def compiles(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    source = folder / "check.cc"
    source.write_text(program)
    includes = [option for folder in FOLDERS for option in ("-isystem", str(folder))]
    command = [*build.native.compiler(), "-std=c++17", "-fsyntax-only", *includes, str(source)]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def include(ours: str) -> str:
    """The directive for NVIDIA's header. The wheel of TensorFlow 2.18 has no nvrtc.h."""
    theirs = HEADERS[ours]
    if not any((folder / theirs).exists() for folder in FOLDERS):
        pytest.skip(f"TensorFlow's wheel has no {theirs}")
    return f"#include <{theirs}>\n"


@pytest.mark.parametrize("ours", HEADERS)
def test_declarations_agree(tmp_path, ours):
    both = include(ours) + (API / ours).read_text()
    done = compiles(both, tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("ours", HEADERS)
def test_every_function_is_nvidias(tmp_path, ours):
    """A name that NVIDIA's header lacks would have nothing to disagree with."""
    functions = FUNCTION.findall((API / ours).read_text())
    assert len(functions) >= 3
    uses = "".join(f"using ::{name};\n" for name in functions)  # some are overloaded in C++
    program = include(ours) + f"namespace own {{\n{uses}}}\n"
    done = compiles(program, tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("ours", "declared", "differing"),
    [
        ("driver.h", "unsigned char value, size_t count", "int value, size_t count"),
        ("nvrtc.h", "nvrtcGetCUBIN(nvrtcProgram, char*", "nvrtcGetCUBIN(nvrtcProgram, void*"),
        ("cublas.h", "a_type, int a_stride", "a_type, long long a_stride"),
        ("cublas.h", "CUBLAS_COMPUTE_64F == 70", "CUBLAS_COMPUTE_64F == 71"),
    ],
)
def test_a_differing_declaration_does_not_compile(tmp_path, ours, declared, differing):
    text = (API / ours).read_text()
    assert declared in text
    both = include(ours) + text.replace(declared, differing)
    assert compiles(both, tmp_path).returncode != 0
