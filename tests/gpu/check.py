"""The CUDA backend without TensorFlow, against PyTorch: the CudnnRNN family by cuDNN and by the
package's own kernels.

    python check.py LIBRARY [--device cuda|cpu] [--small] [--algorithms NAME ...]

LIBRARY is what build.sh builds from core.cc. Results and gradients of each case are compared with
torch.nn in float64 on the CPU; then all are timed beside torch.nn on the GPU.
With ``--device cpu`` tensors are in host memory, for a library that finds the fakes of tests/cuda
in place of CUDA's. ``--small`` leaves out the timing, ``--algorithms`` all algorithms but the named
ones.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

Tensors = dict[str, torch.Tensor]

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
MODULES = {
    "lstm": torch.nn.LSTM,
    "gru": torch.nn.GRU,
    "rnn_tanh": torch.nn.RNN,
    "rnn_relu": torch.nn.RNN,
}
# Relative to the largest element of a tensor: units of roundoff, for sums of up to some hundred
# terms over some dozen steps. TF32 has 10 bits of fraction.
TOLERANCES = {
    torch.float32: 34 * 2.0**-24,
    torch.float64: 34 * 2.0**-53,
    torch.float16: 34 * 2.0**-11,
    torch.bfloat16: 34 * 2.0**-8,
}
TF32_TOLERANCE = 34 * 2.0**-11
FIELDS = ("input", "input_h", "input_c", "params")
OUTPUTS = ("output", "output_h", "output_c")


@dataclass(frozen=True)
class Case:
    mode: str = "lstm"
    layers: int = 1
    directions: int = 1
    inputs: int = 3
    units: int = 5
    proj: int = 0
    time: int = 4
    batch: int = 6
    lengths: tuple[int, ...] = ()
    time_major: bool = True

    @property
    def hidden(self) -> int:
        return self.proj or self.units

    def row_lengths(self) -> list[int]:
        return list(self.lengths) or [self.time] * self.batch

    def module(self, dtype: torch.dtype, device: str = "cpu") -> torch.nn.Module:
        options: dict[str, Any] = {"proj_size": self.proj} if self.proj else {}
        if self.mode.startswith("rnn_"):
            options["nonlinearity"] = self.mode.removeprefix("rnn_")
        return MODULES[self.mode](
            self.inputs,
            self.units,
            self.layers,
            bidirectional=self.directions == 2,
            dtype=dtype,
            device=device,
            **options,
        )

    def __str__(self) -> str:
        shown = f"{self.mode} L{self.layers} D{self.directions} T{self.time} B{self.batch}"
        shown += f" I{self.inputs} H{self.units}" + (f" P{self.proj}" if self.proj else "")
        return shown + (" lengths" if self.lengths else "") + ("" if self.time_major else " major")


SMALL = [
    Case(mode, layers, directions, lengths=lengths, time_major=major)
    for mode, (layers, directions), lengths, major in itertools.product(
        MODULES, [(1, 1), (2, 2)], [(), (2, 4, 0, 1, 3, 2)], [True, False]
    )
] + [Case(layers=2, directions=2, proj=2, lengths=lengths) for lengths in ((), (2, 4, 0, 1, 3, 2))]
# And larger ones, for several tiles and blocks of the package's own kernels.
OWN = [
    case
    for case in SMALL
    # cuDNN alone supports a projection with rows of length zero
    if not (case.proj and case.lengths)
] + [
    Case("lstm", inputs=8, units=70, time=5, batch=19),
    Case("gru", inputs=8, units=33, time=5, batch=33),
    Case("lstm", inputs=8, units=70, proj=24, time=5, batch=6, lengths=(5, 1, 3, 2, 4, 5)),
]
# The op's choice; cuDNN's algorithms; the package's own kernels step by step, or with all steps in
# one launch, of the grid or of clusters. The grid computes a layer that does not fit clusters.
CHOICE, CUDNN = "op", "cudnn"
STEPS, GRID, CLUSTERS = "steps", "grid", "clusters"
NUMBERS = {CHOICE: -1, STEPS: 4, GRID: 5, CLUSTERS: 6}  # of cuda::Algorithm
OWN_KERNELS = (STEPS, GRID, CLUSTERS)
CUDNN_ALGORITHMS = range(4)
# The sizes of the project's goals, and of DeepBench.
LARGE = [
    Case(inputs=h, units=h, time=t, batch=b)
    for b, h, t in [
        (1, 512, 100),
        (16, 1024, 100),
        (64, 1024, 100),
        (64, 2048, 50),
        (128, 4096, 25),
    ]
]


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


# --- PyTorch ---------------------------------------------------------------------------------


def params_of(case: Case, module: torch.nn.Module) -> torch.Tensor:
    """In cuDNN's layout, whose gates have PyTorch's order: all matrices, then all biases."""
    named = dict(module.named_parameters())
    pseudo_layers = [
        f"l{layer}{suffix}"
        for layer in range(case.layers)
        for suffix in ("", "_reverse")[: case.directions]
    ]
    kinds = [["weight_ih", "weight_hh", *(["weight_hr"] if case.proj else [])]]
    kinds.append(["bias_ih", "bias_hh"])
    names = [f"{kind}_{p}" for group in kinds for p in pseudo_layers for kind in group]
    return torch.cat([named[name].flatten() for name in names])


def swapped(case: Case, tensors: Tensors) -> Tensors:
    """Time-major from the case's layout, or the other way round."""
    if case.time_major:
        return tensors
    return {k: v.transpose(0, 1) if v.dim() == 3 else v for k, v in tensors.items()}


def random_problem(case: Case) -> tuple[torch.nn.Module, Tensors, Tensors]:
    """A module in float64, and time-major arguments and upstream gradients, float16's numbers."""
    torch.manual_seed(0)
    module = case.module(torch.float64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(parameter.bfloat16())
    states = case.layers * case.directions
    shapes = {
        "input": (case.time, case.batch, case.inputs),
        "input_h": (states, case.batch, case.hidden),
        "input_c": (states, case.batch, case.units),
    }
    given = {k: torch.randn(s).bfloat16().double() for k, s in shapes.items()}
    upstream = {
        "output": torch.randn(case.time, case.batch, case.directions * case.hidden),
        "output_h": torch.randn(shapes["input_h"]),
        "output_c": torch.randn(shapes["input_c"]),
    }
    if case.mode != "lstm":
        del given["input_c"], upstream["output_c"]
    return module, given, {k: v.bfloat16().double() for k, v in upstream.items()}


def reference(case: Case, module: torch.nn.Module, given: Tensors, upstream: Tensors) -> Tensors:
    """Results and gradients, time-major. PyTorch refuses rows of length zero: they stay as they are
    and hand their gradients back."""
    lengths = torch.tensor(case.row_lengths())
    rows = torch.nonzero(lengths).flatten()
    leaves = {k: v[:, rows].clone().requires_grad_() for k, v in given.items()}
    state = (leaves["input_h"], leaves["input_c"]) if "input_c" in leaves else leaves["input_h"]
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        leaves["input"], lengths[rows], enforce_sorted=False
    )
    output, final = module(packed, state)
    output, _ = torch.nn.utils.rnn.pad_packed_sequence(output, total_length=case.time)
    finals = final if isinstance(final, tuple) else (final,)
    results = dict(zip(OUTPUTS, (output, *finals), strict=False))
    module.zero_grad()
    loss = sum((upstream[k][:, rows] * v).sum() for k, v in results.items())
    loss.backward()
    found: Tensors = {}
    for name, value in results.items():
        source = name.replace("output", "input")
        found[name] = (
            torch.zeros_like(upstream[name]) if name == "output" else given[source].clone()
        )
        found[name][:, rows] = value.detach()
    for name, leaf in leaves.items():
        source = name.replace("input", "output")
        start = torch.zeros_like(given[name]) if name == "input" else upstream[source].clone()
        start[:, rows] = leaf.grad
        found[f"{name}_backprop"] = start
    gradients = case.module(torch.float64)
    with torch.no_grad():
        for into, parameter in zip(gradients.parameters(), module.parameters(), strict=True):
            into.copy_(parameter.grad)
    found["params_backprop"] = params_of(case, gradients).detach()
    return found


# --- the checks ------------------------------------------------------------------------------


def error_of(core: Core, case: Case, dtype: torch.dtype) -> float:
    """The largest error of any result or gradient, relative to the tensor's largest number."""
    module, given, upstream = random_problem(case)
    want = swapped(case, reference(case, module, given, upstream))
    given = swapped(case, given | {"params": params_of(case, module).detach()})
    tensors = core.prepare(case, dtype, given, swapped(case, upstream))
    core.both_passes(case, dtype, tensors)
    errors = []
    for name, right in want.items():
        difference = (tensors[name].cpu().double() - right).abs().max()
        errors.append(float(difference / right.abs().max().clamp_min(1e-30)))
    # NaN is not greater than anything.
    return max(e if e == e else float("inf") for e in errors)


def check_results(core: Core, name: str, cases: list[Case]) -> bool:
    print(f"{'case':44} {'by':8} {'type':9} {'error':>9} {'allowed':>9}")
    passed = True
    core.name = name
    for case, dtype, tf32 in itertools.product(cases, TYPES, (False, True)):
        if tf32 and dtype != torch.float32:
            continue
        if name in (GRID, CLUSTERS) and (
            dtype == torch.float64 or (dtype == torch.float32 and not tf32)
        ):
            continue  # types that tensor cores cannot multiply
        core.allow_tf32(tf32)
        error = error_of(core, case, dtype)
        allowed = TF32_TOLERANCE if tf32 else TOLERANCES[dtype]
        kind = "tf32" if tf32 else str(dtype).removeprefix("torch.")
        wrong = " WRONG" * (error > allowed)
        print(f"{case!s:44} {name:8} {kind:9} {error:9.1e} {allowed:9.1e}{wrong}")
        passed = passed and error <= allowed
    return passed


def milliseconds(run: Any) -> float:
    """Of one call, the best of five series."""
    for _ in range(3):
        run()
    best = float("inf")
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(10):
            run()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end) / 10)
    return best


def times_of(
    core: Core, case: Case, dtype: torch.dtype, given: Tensors, upstream: Tensors
) -> Iterator[float]:
    """Of an algorithm; for cuDNN, of all its algorithms that support the case."""
    for algorithm in CUDNN_ALGORITHMS if core.name == CUDNN else [0]:
        core.cudnn_algorithm = algorithm
        try:
            tensors = core.prepare(case, dtype, given, upstream)
        except RuntimeError as error:
            if algorithm == 0:
                raise
            print(f"# {case} {dtype}, algorithm {algorithm}: {error}")
            continue
        yield milliseconds(partial(core.both_passes, case, dtype, tensors))
    core.cudnn_algorithm = 0


def compare_speed(core: Core, names: list[str]) -> None:
    print(
        f"\n{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: forward and backward, ms"
    )
    print(f"{'case':44} {'type':9} " + " ".join(f"{name:>9}" for name in (*names, "torch")))
    for case, dtype in itertools.product(LARGE, (torch.float32, torch.float16, torch.bfloat16)):
        core.allow_tf32(True)
        torch.backends.cudnn.allow_tf32 = True
        module, given, upstream = random_problem(case)
        given["params"] = params_of(case, module).detach()
        times = []
        for core.name in names:
            times.append(min(times_of(core, case, dtype, given, upstream)))
        tensors = core.prepare(case, dtype, given, upstream)
        peer = case.module(dtype, "cuda")
        x = tensors["input"].clone().requires_grad_()
        state = (tensors["input_h"], tensors["input_c"])

        def torch_passes(peer=peer, x=x, state=state, by=tensors["output_backprop"]) -> None:
            peer(x, state)[0].backward(by)

        times.append(milliseconds(torch_passes))
        kind = str(dtype).removeprefix("torch.")
        print(f"{case!s:44} {kind:9} " + " ".join(f"{time:9.3f}" for time in times))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--small", action="store_true")
    parser.add_argument(
        "--algorithms", nargs="+", default=[*NUMBERS, CUDNN], choices=[*NUMBERS, CUDNN]
    )
    options = parser.parse_args()
    core = Core(options.library, options.device)
    passed = all(
        [
            check_results(core, name, OWN if name in OWN_KERNELS else SMALL)
            for name in options.algorithms
        ]
    )
    if options.device == "cuda" and not options.small:
        compare_speed(core, options.algorithms)
    print("\nall correct" if passed else "\nWRONG results")
    return not passed


if __name__ == "__main__":
    raise SystemExit(main())
