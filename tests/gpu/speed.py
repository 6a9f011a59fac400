"""Microseconds of a step: (t(2T) - t(T)) / T, beside torch.nn and with a floor."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import reference
import torch
from backend import Case

STEPS = 100
SIZES = [(16, 256), (16, 768), (16, 1024), (64, 256), (64, 768), (64, 1024)]
PASSES = ("forward", "inference", "backward")
COLUMNS = ("case", "type", "pass", "kernels", "cudnn", "torch", "floor")


def milliseconds(run: Callable[[], Any]) -> float:
    """Of one call, the best of five series of four."""
    for _ in range(2):
        run()
    best = float("inf")
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(4):
            run()
        end.record()
        end.synchronize()
        best = min(best, start.elapsed_time(end) / 4)
    return best


def floor(case: Case, dtype: torch.dtype, rates: Any) -> float:
    """Microseconds of a forward step: the recurrent weights are read, and multiplied, once. `rates`
    are the bytes and the flops per second that the card reached in a copy and in a product."""
    weights = 4 * case.units * case.units
    size = torch.empty([], dtype=dtype).element_size()
    read, multiply = weights * size / rates[0], 2 * case.batch * weights / rates[1]
    return 1e6 * max(read, multiply)


def rates_of(dtype: torch.dtype) -> tuple[float, float]:
    a = torch.randn(8192, 8192, device="cuda", dtype=dtype)
    copy = milliseconds(lambda: a.clone())
    product = milliseconds(lambda: a @ a)
    return 2 * a.numel() * a.element_size() / copy * 1e3, 2 * 8192.0**3 / product * 1e3


def ours(backend: Any, case: Case, dtype: torch.dtype) -> dict[str, Callable[[], Any]]:
    given, upstream = reference.problem(case, "cuda")
    given, upstream = ({k: v.to(dtype) for k, v in t.items()} for t in (given, upstream))
    found = backend.forward(case, given)
    return {
        "forward": lambda: backend.forward(case, given),
        "inference": lambda: backend.forward(case, given, is_training=False),
        "backward": lambda: backend.backward(case, given, found, upstream),
    }


def torchs(case: Case, dtype: torch.dtype) -> dict[str, Callable[[], Any]]:
    module = reference.module_of(case, dtype, "cuda")
    x = torch.randn(case.time, case.batch, case.inputs, device="cuda", dtype=dtype)
    x.requires_grad_()
    y = module(x)[0]
    by = torch.randn_like(y)

    def inference() -> None:
        with torch.no_grad():
            module(x)

    return {
        "forward": lambda: module(x),
        "inference": inference,
        "backward": lambda: y.backward(by, retain_graph=True),
    }


def per_step(make: Callable[[Case], dict[str, Callable[[], Any]]], case: Case) -> dict[str, float]:
    """Microseconds of each pass."""
    short, long = (
        {k: milliseconds(f) for k, f in make(c).items()}
        for c in (case, replace(case, time=2 * case.time))
    )
    return {k: 1e3 * (long[k] - short[k]) / case.time for k in short}


def measure_case(backend: Any, case: Case, dtype: torch.dtype) -> Any:
    by_cudnn = replace(case, by="cudnn")
    columns = {"kernels": per_step(lambda c: ours(backend, c, dtype), case)}
    if dtype != torch.bfloat16:
        columns["cudnn"] = per_step(lambda c: ours(backend, c, dtype), by_cudnn)
    columns["torch"] = per_step(lambda c: torchs(c, dtype), by_cudnn)
    rows, least = [], floor(case, dtype, rates_of(dtype))
    for name in PASSES:
        row = {column: found[name] for column, found in columns.items()}
        kind = str(dtype).removeprefix("torch.")
        rows.append({"case": f"N{case.batch} H{case.units}", "type": kind, "pass": name, **row})
        rows[-1]["floor"] = least * (2 if name == "backward" else 1)
    return {"ok": True, "microseconds_of_a_step": rows}


def measure(checks: Any) -> None:
    """LSTM layers; TF32 is allowed, as it is by default."""
    checks.backend.allow_tf32(True)
    checks.backend.fills = False
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    for (batch, units), dtype in itertools.product(
        SIZES, (torch.float32, torch.float16, torch.bfloat16)
    ):
        case = Case(time=STEPS, batch=batch, inputs=units, units=units)
        what = f"{case} {dtype}"
        checks.run("speed", what, measure_case, checks.backend, case, dtype)


def table(rows: list[dict[str, Any]]) -> str:
    """Microseconds of a step."""
    if not rows:
        return ""
    lines = ["Microseconds of a step", "".join(f"{c:>11}" for c in COLUMNS)]
    for row in rows:
        cells = (row.get(c, "") for c in COLUMNS)
        lines.append("".join(f"{c:11.2f}" if isinstance(c, float) else f"{c:>11}" for c in cells))
    return "\n".join(lines)
