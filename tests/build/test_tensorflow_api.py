"""cc/tf/tensorflow_api.h against TensorFlow's headers: what differs does not compile."""

import re
import subprocess
from pathlib import Path

import pytest
import tensorflow as tf

HEADERS = [
    *("c_api.h", "kernels.h", "ops.h"),
    *("tf_buffer.h", "tf_datatype.h", "tf_status.h", "tf_tensor.h"),
]
INCLUDES = "".join(f"#include <tensorflow/c/{header}>\n" for header in HEADERS)
STRUCT = re.compile(r"typedef struct (\w+) \{(.*?)\} \1;", re.DOTALL)
ENUMERATOR = re.compile(r"\b(TF_\w+) = (\d+)")
FUNCTION = re.compile(r"^[\w ]+[ *](T\w+)\(", re.MULTILINE)


@pytest.fixture(scope="module")
def declarations(root) -> str:
    return (root / "cc" / "tf" / "tensorflow_api.h").read_text()


@pytest.fixture
def compiles(cxx, tmp_path):
    """Whether a program compiles that includes TensorFlow's headers first."""

    def run(program: str) -> subprocess.CompletedProcess[str]:
        source = tmp_path / "check.cc"
        source.write_text(INCLUDES + program)
        options = ["-std=c++17", "-fsyntax-only", "-isystem", tf.sysconfig.get_include()]
        return subprocess.run([*cxx, *options, str(source)], capture_output=True, text=True)

    return run


def test_declarations_agree(compiles, declarations):
    result = compiles(declarations)
    assert result.returncode == 0, result.stderr


def test_every_function_is_tensorflows(compiles, declarations):
    """A name that TensorFlow's headers lack would have nothing to disagree with."""
    functions = FUNCTION.findall(declarations)
    assert len(functions) > 20
    result = compiles("".join(f"auto* p_{name} = &{name};\n" for name in functions))
    assert result.returncode == 0, result.stderr


def test_constants_agree(compiles, declarations):
    """TensorFlow's definition stands where its header comes first: compare the values."""
    constants = ENUMERATOR.findall(declarations)
    assert ("TF_FLOAT", "1") in constants
    result = compiles("".join(f"static_assert({n} == {v});\n" for n, v in constants))
    assert result.returncode == 0, result.stderr


def test_structs_agree(compiles, declarations):
    structs = STRUCT.findall(declarations)
    assert "TF_Buffer" in [name for name, _ in structs]
    program = "#include <cstddef>\n#include <type_traits>\n"
    for name, body in structs:
        fields = re.findall(r"\(\*(\w+)\)|(\w+);", body)
        program += (
            f"struct Own_{name} {{{body}}};\nstatic_assert(sizeof({name}) == sizeof(Own_{name}));\n"
        )
        for field in ("".join(names) for names in fields):
            program += (
                f"static_assert(offsetof({name}, {field}) == offsetof(Own_{name}, {field}));\n"
                f"static_assert(std::is_same_v<decltype({name}::{field}),"
                f" decltype(Own_{name}::{field})>);\n"
            )
    assert "Own_TF_Buffer, data_deallocator" in program
    result = compiles(program)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize(
    ("declared", "differing"),
    [
        ("int TF_NumDims(const TF_Tensor*)", "int64_t TF_NumDims(const TF_Tensor*)"),
        ("TF_Dim(const TF_Tensor*, int index)", "TF_Dim(const TF_Tensor*, int64_t index)"),
        ("void TF_DeleteTensor(TF_Tensor*)", "void TF_DeleteTensor(TF_Tensor*, int)"),
        ("TF_OpKernelContext_Failure(TF_OpKernelContext*,", "TF_OpKernelContext_Failure(void*,"),
    ],
)
def test_a_differing_declaration_does_not_compile(compiles, declarations, declared, differing):
    assert declared in declarations
    result = compiles(declarations.replace(declared, differing))
    assert result.returncode != 0
    assert "TF_" in result.stderr


def test_builds_without_tensorflow(cxx, root):
    header = root / "cc" / "tf" / "tensorflow_api.h"
    included = set(re.findall(r"#include [<\"](.*?)[>\"]", header.read_text()))
    assert not [name for name in included if "tensorflow" in name]
    command = [*cxx, "-std=c++17", "-fsyntax-only", "-x", "c++", str(header)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=Path(header.anchor))
    assert result.returncode == 0, result.stderr


def test_windows_finds_every_function(root, declarations):
    source = (root / "cc" / "tf" / "windows" / "tensorflow_api.cc").read_text()
    declared = re.findall(r"\b(TF_\w+)\(", declarations)
    assert {*re.findall(r"F\((\w+)\)", source)} == {*declared}
