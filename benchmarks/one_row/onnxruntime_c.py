"""ONNX Runtime through its C API, as a program in C calls it.

The library is that of the Python package, which has no headers. So the functions are taken from the
table by their numbers, which no version of ONNX Runtime changes.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from one_row.cases import Case
from one_row.onnx_graph import OnnxGraph, onnx_graph
from one_row.peers import Prepared
from one_row.timing import BATCH, CALLS, Percentiles, percentiles

Array = np.ndarray
SOURCE = Path(__file__).resolve().parents[1] / "latency_onnxruntime.c"
# The indices of functions in OrtApi, include/onnxruntime/core/session/onnxruntime_c_api.h.
_FUNCTIONS = {
    "GetErrorMessage": 2,
    "CreateEnv": 3,
    "CreateSession": 7,
    "Run": 9,
    "CreateSessionOptions": 10,
    "SetIntraOpNumThreads": 24,
    "SetInterOpNumThreads": 25,
    "CreateTensorWithDataAsOrtValue": 49,
    "CreateCpuMemoryInfo": 69,
}
_VERSION = 1  # of the table; later ones only append functions
_FLOAT, _WARNING, _DEVICE_ALLOCATOR, _DEFAULT_MEMORY = 1, 2, 0, 0  # values of the header's enums


def onnxruntime_c(case: Case, model: keras.Model, folder: Path) -> list[Prepared]:
    """Calls of one step with the states of the last one."""
    graph = onnx_graph(case, model)
    file = folder / "one_row.onnx"
    file.write_bytes(graph.content)
    steps = _Steps(_Api(), graph, case, file, folder)

    def call() -> Array:
        output = steps.outputs[steps.turn.value]
        steps.measure(1, 1)
        return output

    def sample() -> Percentiles:
        steps.measure(CALLS // 10, 1)
        singles, batches = steps.measure(CALLS, 1), steps.measure(CALLS // 10, BATCH)
        return Percentiles(percentiles(batches).p50, percentiles(singles).p99, CALLS)

    return [Prepared("", steps.x, call, sample=sample)]


class _Api:
    """The functions of ONNX Runtime."""

    def __init__(self) -> None:
        import onnxruntime

        (path,) = (Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so.*")
        get_base = ctypes.CDLL(str(path)).OrtGetApiBase
        get_base.restype = ctypes.POINTER(ctypes.c_void_p)
        get_api = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint32)
        self.table = get_api(get_base()[0])(_VERSION)

    def create(self, name: str, *arguments: Any) -> ctypes.c_void_p:
        """Calls a function whose last argument gets what it creates."""
        found = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(found))
        return found

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that returns a status."""
        function = ctypes.CFUNCTYPE(ctypes.c_void_p)(self.table[_FUNCTIONS[name]])
        self.check(name, function(*arguments))

    def check(self, name: str, status: int | None) -> None:
        """Raises the error of a status, which is null if there is none."""
        if status:
            message = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)
            text = message(self.table[_FUNCTIONS["GetErrorMessage"]])(status)
            raise RuntimeError(f"{name}: {text.decode()}")


class _Steps:
    """A session with its arrays.

    Attributes:
      x: the input of the next call.
      outputs: the output of the model, in each of the two sets.
      turn: the set of the next call.
    """

    def __init__(self, api: _Api, graph: OnnxGraph, case: Case, file: Path, folder: Path) -> None:
        self._api, self._measure = api, _library(folder).Measure
        self._measure.restype = ctypes.c_void_p
        env = api.create("CreateEnv", _WARNING, b"latency")
        options = api.create("CreateSessionOptions")
        api.call("SetIntraOpNumThreads", options, 1)
        api.call("SetInterOpNumThreads", options, 1)
        self._session = api.create("CreateSession", env, os.fsencode(file), options)
        self._memory = api.create("CreateCpuMemoryInfo", _DEVICE_ALLOCATOR, _DEFAULT_MEMORY)
        self.x = np.zeros((case.time, 1, case.inputs), np.float32)
        sets = [{n: np.zeros(s, np.float32) for n, s in graph.shapes.items()} for _ in range(2)]
        names = list(graph.shapes)
        new = [dict(graph.states)[name] for name in names]
        self.outputs, extra = [], graph.output not in new
        for after in (sets[1], sets[0]):
            y = np.zeros((case.time, 1, case.layers[-1].size), np.float32)
            self.outputs.append(y if extra else after[names[new.index(graph.output)]])
        self._arrays = (
            [array for before in sets for array in (self.x, *before.values())],
            [
                array
                for after, y in zip((sets[1], sets[0]), self.outputs, strict=True)
                for array in (*after.values(), *([y] if extra else []))
            ],
        )
        self._names = _texts(["x", *names]), _texts(new + [graph.output] * extra)
        self._tensors = tuple(self._values(arrays) for arrays in self._arrays)
        self.turn = ctypes.c_int(0)

    def _values(self, arrays: Sequence[Array]) -> ctypes.Array[ctypes.c_void_p]:
        """Tensors that share the memory of arrays."""
        found = (ctypes.c_void_p * len(arrays))()
        for k, array in enumerate(arrays):
            shape = (ctypes.c_int64 * array.ndim)(*array.shape)
            data = ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes)
            sizes = shape, ctypes.c_size_t(array.ndim)
            found[k] = self._api.create(
                "CreateTensorWithDataAsOrtValue", self._memory, *data, *sizes, _FLOAT
            ).value
        return found

    def measure(self, batches: int, batch: int) -> list[float]:
        """The seconds of a call, for each of some batches of calls."""
        times = (ctypes.c_double * batches)()
        (inputs, outputs), (read, written) = self._names, self._tensors
        status = self._measure(
            *(ctypes.c_void_p(self._api.table[_FUNCTIONS["Run"]]), self._session),
            *(inputs, read, ctypes.c_size_t(len(inputs))),
            *(outputs, written, ctypes.c_size_t(len(outputs))),
            *(ctypes.c_long(batches), ctypes.c_long(batch), ctypes.byref(self.turn), times),
        )
        self._api.check("Run", status)
        return list(times)


def _texts(names: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))


@functools.cache
def _library(folder: Path) -> ctypes.CDLL:
    """Compiles the loop, once for a folder."""
    library = folder / "latency_onnxruntime.so"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    options = ["-std=c11", "-O2", "-fPIC", "-shared"]
    subprocess.run([*compiler, *options, str(SOURCE), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))
