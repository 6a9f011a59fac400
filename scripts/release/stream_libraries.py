"""Compiles the library that reads TensorFlow's CUDA stream, for each minor version of TensorFlow.

TensorFlow's headers come from its wheels, which pip downloads once into the cache folder. The
library links nothing of TensorFlow. It reads offsets in classes that contain types of libstdc++,
so GCC compiles it, as on a user's machine, and not zig with libc++. The headers of a wheel serve
both processors.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "cc" / "tf" / "cuda" / "stream_library"
# A released version for each minor one. The layout of a minor version without a release can change.
VERSIONS = ["2.18.1", "2.19.1", "2.20.0", "2.21.0"]
COMPILERS = {"x86_64": "g++", "aarch64": "aarch64-linux-gnu-g++"}
# tf.sysconfig.get_compile_flags() of these versions.
TENSORFLOW_FLAGS = ["-D_GLIBCXX_USE_CXX11_ABI=1", "--std=c++17", "-DEIGEN_MAX_ALIGN_BYTES=64"]
FLAGS = ["-O2", "-DNDEBUG", "-fPIC", "-shared", "-s", "-fvisibility=hidden", "-Wl,--build-id=none"]


def name(version: str) -> str:
    """The name that tf_lstm_ops/_cuda_stream.py looks for."""
    return f"tf_lstm_ops_cuda_stream_{'.'.join(version.split('.')[:2])}.so"


def headers(version: str, cache: Path) -> Path:
    """TensorFlow's include folder in the cache, downloaded where it is not there."""
    folder = cache / "headers" / version
    if not folder.exists():
        part = cache / "headers" / f"{version}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(part)]
        platforms = ["manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_27_x86_64"]
        pip += ["--only-binary=:all:", "--python-version=3.11"]
        pip += [f"--platform={platform}" for platform in platforms]
        subprocess.run([*pip, f"tensorflow-cpu=={version}"], check=True)
        [wheel] = part.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            inside = [n for n in archive.namelist() if n.startswith("tensorflow/include/")]
            archive.extractall(part, inside)
        wheel.unlink()  # a quarter of a gigabyte
        part.rename(folder)
    return folder / "tensorflow" / "include"


def compile_all(processor: str, cache: Path, output: Path) -> list[Path]:
    """The libraries for a processor, written to a folder."""
    output.mkdir(parents=True, exist_ok=True)
    libraries = []
    for version in VERSIONS:
        library = output / name(version)
        include = ["-isystem", str(headers(version, cache)), f"-I{SOURCE}"]
        command = [COMPILERS[processor], *FLAGS, *TENSORFLOW_FLAGS, *include]
        subprocess.run([*command, "stream.cc", "-o", str(library)], cwd=SOURCE, check=True)
        libraries.append(library)
    return libraries
