"""Calls of the library that build.sh builds from core.cc."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from check_cases import FIELDS, MODULES, OUTPUTS, TYPES, Case, Tensors

# The op's choice; cuDNN's algorithms; the package's own kernels step by step, or with all steps in
# one launch, of the grid or of clusters. The grid computes a layer that does not fit clusters.
CHOICE, CUDNN = "op", "cudnn"
STEPS, GRID, CLUSTERS = "steps", "grid", "clusters"
NUMBERS = {CHOICE: -1, STEPS: 4, GRID: 5, CLUSTERS: 6}  # of cuda::Algorithm
OWN_KERNELS = (STEPS, GRID, CLUSTERS)
CUDNN_ALGORITHMS = range(4)


class Call(ctypes.Structure):
    _fields_ = (
        ("stream", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("lengths", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("layers", "directions", "inputs", "units", "hidden")),
        *((name, ctypes.c_int64) for name in ("time", "batch")),
        *((name, ctypes.c_int32) for name in ("type", "cell", "time_major", "is_training")),
        ("algorithm", ctypes.c_int32),
    )


NAMES = (
    *FIELDS,
    *(*OUTPUTS, "reserve"),
    *(f"{name}_backprop" for name in OUTPUTS),
    *(f"{name}_backprop" for name in FIELDS),
)


class Pointers(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in NAMES),
        ("reserve_size", ctypes.c_int64),
    )


class Core:
    """The library's calls on tensors of a device."""

    def __init__(self, path: str, device: str):
        # Global, so that the backend finds the switch for TF32 in it.
        self._functions = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        for name in ("gpu_reserve_size", "gpu_forward", "gpu_backward"):
            getattr(self._functions, name).restype = ctypes.c_char_p
        self.device = device
        self.name, self.cudnn_algorithm = CUDNN, 0
        self._memory: list[torch.Tensor] = []

        @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
        def allocate(size: int) -> int:
            self._memory.append(torch.full([max(size, 1)], 0xFF, dtype=torch.uint8, device=device))
            return self._memory[-1].data_ptr()

        self._allocate = allocate

    def allow_tf32(self, allow: bool) -> None:
        self._functions.gpu_allow_tf32(int(allow))

    def run(self, name: str, case: Case, dtype: torch.dtype, tensors: Tensors, *more: Any) -> None:
        training = "output_backprop" in tensors
        lengths = (ctypes.c_int32 * case.batch)(*case.row_lengths())
        stream = torch.cuda.current_stream().cuda_stream if self.device == "cuda" else 1
        call = Call(
            stream,
            ctypes.cast(self._allocate, ctypes.c_void_p),
            ctypes.cast(lengths, ctypes.c_void_p),
            *(case.layers, case.directions, case.inputs, case.units, case.hidden),
            *(case.time, case.batch, TYPES.index(dtype), list(MODULES).index(case.mode)),
            *(int(case.time_major), int(training)),
            self.cudnn_algorithm if self.name == CUDNN else NUMBERS[self.name],
        )
        pointers = Pointers(*(tensors[k].data_ptr() if k in tensors else None for k in NAMES))
        pointers.reserve_size = tensors["reserve"].numel() if "reserve" in tensors else 0
        function = getattr(self._functions, name)
        error = function(ctypes.byref(call), ctypes.byref(pointers), *more)
        if error:
            raise RuntimeError(error.decode())
        self._memory.clear()  # torch reuses it in stream order

    def prepare(self, case: Case, dtype: torch.dtype, given: Tensors, upstream: Tensors) -> Tensors:
        """All tensors of both passes; outputs are NaN."""
        tensors = {k: v.to(dtype).to(self.device).contiguous() for k, v in given.items()}
        for name, value in upstream.items():
            tensors[f"{name}_backprop"] = value.to(dtype).to(self.device).contiguous()
            tensors[name] = torch.full_like(tensors[f"{name}_backprop"], torch.nan)
        for name in given:
            tensors[f"{name}_backprop"] = torch.full_like(tensors[name], torch.nan)
        size = ctypes.c_int64()
        self.run("gpu_reserve_size", case, dtype, tensors, ctypes.byref(size))
        tensors["reserve"] = torch.full([size.value], torch.nan, dtype=dtype, device=self.device)
        return tensors

    def both_passes(self, case: Case, dtype: torch.dtype, tensors: Tensors) -> None:
        self.run("gpu_forward", case, dtype, tensors)
        self.run("gpu_backward", case, dtype, tensors)
