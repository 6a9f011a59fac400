"""What calls do on the device besides their results; a missing device or library."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cuda import build
from devices.build import tensorflow_folder

pytestmark = pytest.mark.cuda

PROGRAM = Path(__file__).with_name("program.py")


def check(name: str, folder: Path, **environment: str) -> Any:
    """The result of the program."""
    done = subprocess.run(
        [sys.executable, str(PROGRAM), name],
        env={**os.environ, **build.environment(folder), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout.splitlines()[-1])


def without(library: str, built: Path, folder: Path) -> Path:
    """A folder with all libraries but one."""
    shutil.copytree(built, folder, ignore=shutil.ignore_patterns(library, "objects", "programs"))
    return folder


def test_no_gpu(built):
    [kind, message] = check("error", built, FAKE_NO_DEVICE="1")
    assert kind == "InternalError"
    assert "cuInit failed: CUDA_ERROR_NO_DEVICE, no CUDA-capable device is detected" in message


@pytest.mark.parametrize(
    ("library", "name", "package"),
    [
        ("libcuda.so.1", "NVIDIA's driver", "the driver"),
        ("libnvrtc.so.12", "NVRTC", "the pip package nvidia-cuda-nvrtc-cu12"),
        ("libcublas.so.12", "cuBLAS", "the pip package nvidia-cublas-cu12"),
    ],
)
def test_the_error_names_a_missing_library_and_its_package(tmp_path, built, library, name, package):
    if list((tensorflow_folder().parent / "nvidia").glob(f"*/lib/{library}")):
        pytest.skip(f"{library} lies beside TensorFlow, where it would be found")
    folder = without(library, built, tmp_path / "incomplete")
    [kind, message] = check("error", folder)
    assert kind == "FailedPreconditionError"
    assert name in message and library.partition(".")[0] in message
    assert f"it comes with {package}" in message


def test_the_error_has_the_log_of_the_compiler(built):
    [kind, message] = check("error", built, FAKE_CXX="c++ -Dexpf=no_such_function")
    assert kind == "InternalError"
    assert "no_such_function" in message


def test_the_values_of_masked_inputs_do_not_matter(built):
    assert all(check("masked_input", built))


def test_every_call_has_the_same_bits(built):
    assert all(check("same_bits", built))


def test_tf32_where_tensorflow_allows_it(built):
    tf32, full = 77, 68  # CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F
    assert check("compute_types", built) == [tf32, full]


def test_what_the_kernels_lack_is_refused(built):
    activation, recurrent_activation, projection = check("lacking_options", built)
    assert activation == recurrent_activation
    assert "activation must be tanh and recurrent_activation sigmoid on CUDA" in activation
    assert "projection must be absent on CUDA" in projection
