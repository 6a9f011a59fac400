"""Builds fakes of CUDA's libraries in host memory, a TensorFlow device over them, and the CUDA
library as setup.py builds it.

As a program: ``python build.py FOLDER`` writes them there. A library that is newer than its sources
is not built again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path += [str(ROOT / "build_defs"), str(HERE.parent)]

import native  # noqa: E402

from devices.build import is_older, tensorflow_folder  # noqa: E402

OWN = ["-std=c++17", "-O2", "-g", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/cc"]
PRELUDE = f'-DFAKE_PRELUDE="{HERE}/fake/prelude.h"'
# The libraries that the CUDA library opens, and their sources.
FAKES = {
    "libcuda.so.1": ["driver.cc"],
    "libnvrtc.so.12": ["nvrtc.cc"],
    "libcublas.so.12": ["cublas.cc"],
    "libcudnn.so.9": ["cudnn_descriptors.cc", "cudnn_passes.cc", "rnn.cc"],
    "stream.so": ["stream.cc"],
}
PLUGIN = "host_address"  # also of Metal's tests


def build_fakes(folder: Path) -> Path:
    """The folder for LD_LIBRARY_PATH."""
    for name, sources in FAKES.items():
        paths = [HERE / "fake" / source for source in sources]
        _library(folder / name, [p for p in paths if p.exists()], [*OWN, PRELUDE], [])
    return folder


def build_plugin(folder: Path) -> Path:
    """The device "GPU"."""
    source = HERE.parent / "metal" / "plugins" / f"{PLUGIN}.cc"
    tensorflow = tensorflow_folder()
    flags = [*OWN, "-Wno-unused-parameter", "-isystem", str(tensorflow / "include")]
    link = [f"-L{tensorflow}", "-l:libtensorflow_framework.so.2"]
    return _library(folder / f"{PLUGIN}.so", [source], flags, link)


def build_kernels(folder: Path) -> Path:
    """The CUDA library."""
    output = folder / native.FLAGS["CUDA_LIBRARY"]
    if is_older(output, (ROOT / "cc").rglob("*")):
        native.build([output], folder / "objects")
    return output


def build_all(folder: Path) -> None:
    build_fakes(folder)
    build_plugin(folder)
    build_kernels(folder)


def environment(folder: Path) -> dict[str, str]:
    """Variables with which a process runs the CUDA kernels on the fakes."""
    return {
        "LD_LIBRARY_PATH": str(folder),
        "FAKE_PROGRAMS": str(folder / "programs"),
        "TF_LSTM_OPS_CUDA_LIBRARY": str(folder / native.FLAGS["CUDA_LIBRARY"]),
        "TF_LSTM_OPS_CUDA_STREAM_LIBRARY": str(folder / "stream.so"),
        "TF_LSTM_OPS_GPU": "1",
        "TF_LSTM_OPS_TEST_PLUGIN": str(folder / f"{PLUGIN}.so"),
    }


def _library(output: Path, sources: list[Path], flags: list[str], link: list[str]) -> Path:
    output.parent.mkdir(parents=True, exist_ok=True)
    headers = [*HERE.glob("fake/*.h"), *(ROOT / "cc" / "backends" / "cuda" / "api").glob("*")]
    if is_older(output, [*sources, *headers, Path(__file__)]):
        soname = f"-Wl,-soname,{output.name}"
        command = [*native.compiler(), *flags, "-shared", soname, *map(str, sources), *link]
        subprocess.run([*command, "-o", str(output)], check=True, env={**os.environ, "LC_ALL": "C"})
    return output


if __name__ == "__main__":
    build_all(Path(sys.argv[1]).resolve())
