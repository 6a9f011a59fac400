"""What calls do on the device besides their results; a missing device or library."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cuda import build
from devices.build import tensorflow_folder

pytestmark = pytest.mark.cuda

PROGRAM = Path(__file__).with_name("program.py")


def check(name: str, folder: Path, program: Path = PROGRAM, **environment: str) -> Any:
    """The result of the program."""
    done = subprocess.run(
        [sys.executable, str(program), name],
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


def test_programs_are_compiled_once_and_cached(tmp_path, built):
    cache = {"TF_LSTM_OPS_CUDA_CACHE": str(tmp_path / "cache")}
    assert check("error", built, **cache) is None
    cached = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()}
    # The steps of the cell one by one, in a grid and in clusters; and operations on whole tensors.
    assert len(cached) == 4
    # Nothing is compiled again: there is no compiler.
    assert check("error", built, **cache, FAKE_CXX="/bin/false") is None
    # A file that is no program is compiled again.
    for path in cached:
        path.write_bytes(b"broken")
    [kind, message] = check("error", built, **cache, FAKE_CXX="/bin/false")
    assert kind == "InternalError" and "nvrtcCompileProgram failed" in message
    assert check("error", built, **cache) is None
    assert all(path.stat().st_size > len(b"broken") for path in cached)


def test_cached_programs_are_those_of_this_user(tmp_path, built):
    """Others could run code as this user otherwise."""
    folder = tmp_path / "cache"
    cache = {"TF_LSTM_OPS_CUDA_CACHE": str(folder)}
    without_compiler = cache | {"FAKE_CXX": "/bin/false"}
    assert check("error", built, **cache) is None
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = list(folder.iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert check("error", built, **without_compiler) is None

    def is_refused() -> bool:
        result = check("error", built, **without_compiler)
        return result is not None and "nvrtcCompileProgram failed" in result[1]

    for file in files:
        file.chmod(0o622)
    assert is_refused()
    for file in files:
        file.chmod(0o600)
        file.rename(tmp_path / file.name)
        file.symlink_to(tmp_path / file.name)
    assert is_refused()
    for file in files:
        (tmp_path / file.name).rename(file)
    assert check("error", built, **without_compiler) is None
    folder.chmod(0o777)
    assert is_refused()
    folder.chmod(0o700)
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    assert is_refused()


def test_a_folder_that_cannot_be_written_to_is_no_error(built):
    assert check("error", built, TF_LSTM_OPS_CUDA_CACHE="/proc/none") is None


def test_the_error_has_the_log_of_the_compiler(tmp_path, built):
    cache = {"TF_LSTM_OPS_CUDA_CACHE": str(tmp_path / "cache")}
    [kind, message] = check("error", built, **cache, FAKE_CXX="c++ -Dexpf=no_such_function")
    assert kind == "InternalError"
    assert "no_such_function" in message


def test_the_values_of_masked_inputs_do_not_matter(built):
    assert all(check("masked_input", built))


def test_every_call_has_the_same_bits(built):
    assert all(check("same_bits", built))


def test_tf32_where_tensorflow_allows_it(built):
    tf32, full = 77, 68  # CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_32F
    assert check("compute_types", built) == [tf32, full]
