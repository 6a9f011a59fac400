"""Calls of the library that build.sh builds from core.cc, on PyTorch's tensors."""

from __future__ import annotations

import contextlib
import ctypes
from dataclasses import dataclass
from typing import Any

import torch

Tensors = dict[str, torch.Tensor]

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
CELLS = ["lstm", "gru", "rnn_tanh", "rnn_relu"]
INPUTS = ("x", "h0", "c0", "kernel", "recurrent", "bias", "peephole")
OUTPUTS = ("y", "final_h", "final_c")


@dataclass(frozen=True)
class Case:
    """A direction of an LSTM layer on the package's own kernels, or a multi-layer RNN by cuDNN."""

    cell: str = "lstm"
    by: str = "kernels"  # or "cudnn"
    time: int = 5
    batch: int = 6
    inputs: int = 3
    units: int = 5
    # Of the kernels.
    masked: bool = False
    peephole: bool = False
    clip: float = 0.0
    reversed: bool = False
    # Of cuDNN.
    layers: int = 1
    directions: int = 1
    proj: int = 0
    lengths: tuple[int, ...] = ()
    time_major: bool = True

    @property
    def hidden(self) -> int:
        return self.proj or self.units

    def __str__(self) -> str:
        shown = f"{self.by} {self.cell} T{self.time} N{self.batch} I{self.inputs} H{self.units}"
        shown += "".join(f" {k}" for k in ("masked", "peephole", "reversed") if getattr(self, k))
        if self.by == "cudnn":
            shown += f" L{self.layers} D{self.directions}" + f" P{self.proj}" * (self.proj > 0)
            shown += " lengths" * bool(self.lengths) + " batch-major" * (not self.time_major)
        return shown + f" clip {self.clip}" * (self.clip > 0)


class Call(ctypes.Structure):
    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("stream", "allocate", "lengths")),
        *((name, ctypes.c_int64) for name in ("layers", "directions", "inputs", "units")),
        *((name, ctypes.c_int64) for name in ("hidden", "time", "batch")),
        ("clip", ctypes.c_double),
        *((name, ctypes.c_int32) for name in ("type", "cell", "reversed", "time_major")),
        ("is_training", ctypes.c_int32),
    )


NAMES = (
    *("x", "mask", "h0", "c0", "kernel", "recurrent", "bias", "peephole"),
    *(*OUTPUTS, "saved"),
    *(f"{name}_grad" for name in (*OUTPUTS, *INPUTS)),
)


class Pointers(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_void_p) for name in NAMES)


class Backend:
    """The calls on tensors of a device: "cuda", or "cpu" with fakes of CUDA's libraries."""

    def __init__(self, path: str, device: str):
        # Global, so that the backend finds the switch for TF32 in it.
        self._functions = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        for name in ("gpu_layer", "gpu_cudnn"):
            getattr(self._functions, name).restype = ctypes.c_char_p
        self.device = device
        self._memory: list[torch.Tensor] = []

        @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
        def allocate(size: int) -> int:
            memory = torch.empty([max(size, 1)], dtype=torch.uint8, device=device)
            if self.fills:
                memory.fill_(0xFF)  # NaN in every type
            self._memory.append(memory)
            return memory.data_ptr()

        self.fills = True  # what is not written is then noticed
        self._allocate = allocate

    def stream(self) -> Any:
        """A stream of its own, as TensorFlow's are, not the default one, which waits for others."""
        if self.device == "cpu":
            return contextlib.nullcontext()
        return torch.cuda.stream(torch.cuda.Stream())

    def is_usable(self) -> bool:
        """Whether the device computes: a wrong access to memory ends all work of its process."""
        try:
            if self.device == "cuda":
                torch.cuda.synchronize()
        except RuntimeError:
            return False
        return True

    def allow_tf32(self, allow: bool) -> None:
        self._functions.gpu_allow_tf32(int(allow))

    def _run(self, case: Case, tensors: Tensors, is_training: bool, *more: Any) -> None:
        lengths = (ctypes.c_int32 * case.batch)(*(case.lengths or [case.time] * case.batch))
        call = Call(
            torch.cuda.current_stream().cuda_stream if self.device == "cuda" else 1,
            ctypes.cast(self._allocate, ctypes.c_void_p),
            ctypes.cast(lengths, ctypes.c_void_p),
            *(case.layers, case.directions, case.inputs, case.units, case.hidden),
            *(case.time, case.batch, case.clip, TYPES.index(tensors["x"].dtype)),
            *(CELLS.index(case.cell), int(case.reversed), int(case.time_major), int(is_training)),
        )
        pointers = Pointers(*(tensors[k].data_ptr() if k in tensors else None for k in NAMES))
        is_layer = case.by == "kernels"
        function = self._functions.gpu_layer if is_layer else self._functions.gpu_cudnn
        error = function(ctypes.byref(call), ctypes.byref(pointers), *(() if is_layer else more))
        if error:
            raise RuntimeError(error.decode())
        self._memory.clear()  # PyTorch reuses it in the order of the stream

    def _saved(self, case: Case, given: Tensors) -> torch.Tensor:
        size = case.batch * case.time * 6 * case.units
        if case.by == "cudnn":
            found = ctypes.c_int64()
            self._run(case, given, True, ctypes.byref(found))
            size = found.value
        return torch.full([size], torch.nan, dtype=given["x"].dtype, device=self.device)

    def forward(self, case: Case, given: Tensors, is_training: bool = True) -> Tensors:
        """The results; in training "saved" too."""
        steps = (case.time, case.batch)
        if case.by == "kernels" or not case.time_major:
            steps = steps[::-1]
        like = {"dtype": given["x"].dtype, "device": self.device}
        found = {"y": torch.full([*steps, case.directions * case.hidden], torch.nan, **like)}
        found["final_h"] = torch.full_like(given["h0"], torch.nan)
        if "c0" in given:
            found["final_c"] = torch.full_like(given["c0"], torch.nan)
        if is_training:
            found["saved"] = self._saved(case, given)
        self._run(case, {**given, **found}, is_training, None)
        return found

    def backward(self, case: Case, given: Tensors, found: Tensors, upstream: Tensors) -> Tensors:
        """The gradients of the inputs."""
        names = [name for name in INPUTS if name in given]
        grads = {f"{name}_grad": torch.full_like(given[name], torch.nan) for name in names}
        by = {f"{name}_grad": value for name, value in upstream.items()}
        self._run(case, {**given, **found, **by, **grads}, True, None)
        return grads
