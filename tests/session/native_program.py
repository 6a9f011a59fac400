"""Builds the C++ programs of this folder with the library of sessions."""

from __future__ import annotations

import os
import platform
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from built_once import built_once
from session import c_library, graphs, layers
from session import session_file as f

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# The programs use mmap, seccomp and the names of glibc's allocator.
glibc = pytest.mark.skipif(
    not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc",
    reason="the program is for Linux with glibc",
)


def build(source: str, factory: pytest.TempPathFactory, sanitizers: str = "") -> Path:
    """The program of a source of this folder, which is compiled once a run.

    Without sanitizers the program loads the library under test. With them it contains the objects
    of a library that is built for it, with the folder that ``native.py build --sanitize`` uses.
    """
    if not any(map(shutil.which, ("c++", "g++", "clang++"))) and not os.environ.get("CXX"):
        pytest.skip("no C++ compiler")
    name = "_".join([Path(source).stem, *sanitizers.split(",")])
    return built_once(factory, name, lambda program: _compile(source, program, sanitizers))


def _compile(source: str, program: Path, sanitizers: str) -> None:
    build_defs = runpy.run_path(str(ROOT / "build_defs" / "native.py"))
    options = ["-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"]
    if sanitizers:
        inputs = _objects(build_defs, sanitizers)
        options += [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    else:
        library = c_library.path().resolve()
        # The library calls the functions that the program defines.
        inputs = ["-rdynamic", str(library), f"-Wl,-rpath,{library.parent}", "-ldl"]
    command = [*build_defs["compiler"](), *options, "-I", str(ROOT / "include")]
    command += [str(HERE / source), *inputs, "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _objects(build_defs: dict, sanitizers: str) -> list[str]:
    """Builds the library with sanitizers. Returns its objects."""
    flags = build_defs["FLAGS"]
    folder = build_defs["OBJECTS"] / sanitizers.replace(",", "_")
    with mock.patch.dict(os.environ, {flags["INSTRUMENT_VARIABLE"]: sanitizers}):
        build_defs["_use_ccache"]()
        build_defs["build"]([folder / flags["INFERENCE_LIBRARY"]], folder)
    units = build_defs["inference_units"](platform.machine())
    return [str(folder / unit.object) for unit in units]


LARGE_CHAINS = {
    "lstm of 256": lambda rng: [layers.recurrent(rng, f.LSTM, layers.INPUTS, 256)],
    "grus of 256": lambda rng: [
        layers.recurrent(rng, f.GRU, layers.INPUTS, 256),
        layers.recurrent(rng, f.GRU, 256, 256),
        layers.dense(rng, 256, 40, "softmax"),
    ],
    "lstm of 300 with a projection": lambda rng: [
        layers.recurrent(rng, f.LSTM, layers.INPUTS, 300, hidden=150, absent=())
    ],
    "layer norm lstm of 200": lambda rng: [
        layers.recurrent(rng, f.LAYER_NORM_LSTM, layers.INPUTS, 200)
    ],
    "both of 300": lambda rng: [
        layers.recurrent(*(rng, f.LSTM, layers.INPUTS, 300), directions=f.BOTH, merge=f.CONCATENATE)
    ],
}


def write(folder: Path, name: str, weights: int = f.FLOAT32) -> Path:
    """Writes the file of a chain: of version 1, or with weights of another type of version 2."""
    rng = np.random.default_rng(len(name))
    chain = (layers.CHAINS.get(name) or LARGE_CHAINS[name])(rng)
    if weights == f.FLOAT32:
        return _write(folder, name, f.write(chain))
    graph = graphs.with_weights(graphs.of_layers(rng, chain), weights)
    return _write(folder, f"{name} {weights}", f.write_graph(graph))


def write_graph(folder: Path, name: str, weights: int = f.FLOAT32) -> Path:
    """Writes the file of a graph with weights of a type."""
    return _write(folder, f"{name} {weights}", f.write_graph(graphs.make(name, weights)))


def _write(folder: Path, name: str, content: bytes) -> Path:
    path = folder / f"{name.replace(' ', '_')}.bin"
    path.write_bytes(content)
    return path
