"""The CUDA backend without TensorFlow, against PyTorch: results, equal bits, speed, a verdict.

    python check.py LIBRARY OUT_DIR [--device cuda|cpu] [--small]

LIBRARY is what build.sh builds from core.cc. OUT_DIR/results.jsonl gets a line for each case as it
ends. A case that fails does not end the others: if the device computes no more, they run in a new
process, with `--first` of them. With `--device cpu` tensors are in host memory, for
a library that finds the fakes of tests/cuda in place of CUDA's. `--small` runs the small matrix
only, as the sanitizers need it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import reference
import speed
import torch
from backend import TYPES, Backend, Case, Tensors

# Units of roundoff. TF32 has 10 bits of fraction.
ROUNDOFF = {torch.float32: 2.0**-24, torch.float64: 2.0**-53, torch.float16: 2.0**-11}
ROUNDOFF[torch.bfloat16], TF32_ROUNDOFF = 2.0**-8, 2.0**-11
LENGTHS = (2, 5, 0, 1, 4, 3)

SMALL = [
    Case(masked=masked, reversed=reverse)
    for masked, reverse in itertools.product((False, True), (False, True))
]
SMALL += [
    Case(masked=masked, peephole=True, clip=clip) for masked in (False, True) for clip in (0, 0.5)
]
SMALL += [
    Case(cell, "cudnn", layers=n, directions=n, lengths=lengths, time_major=major)
    for cell, n, lengths, major in itertools.product(
        ("lstm", "gru", "rnn_tanh", "rnn_relu"), (1, 2), ((), LENGTHS), (True, False)
    )
]
SMALL += [Case("lstm", "cudnn", layers=2, directions=2, proj=2, lengths=n) for n in ((), LENGTHS)]
LARGE = [
    Case(cell, by, time=100, batch=batch, inputs=units, units=units, masked=by == "kernels")
    for (cell, by), batch, units in itertools.product(
        (("lstm", "kernels"), ("lstm", "cudnn"), ("gru", "cudnn")), (16, 64), (256, 768, 1024)
    )
]
LARGE = [
    replace(c, lengths=tuple(1 + 37 * k % c.time for k in range(c.batch)))
    if c.by == "cudnn" and c.batch == 64
    else c
    for c in LARGE
]


def tolerance(case: Case, dtype: torch.dtype, tf32: bool) -> float:
    """Relative to the largest element of a tensor. In float32 and float64 the rounding errors of
    steps are independent, so their sum grows as the root of the number of steps; 64 for the sums
    within a step, for gradients, which have more of them, and for cuDNN's own tanh. With few bits
    the rounding of products and of what is saved counts, each once: the emulation errs by five
    units of roundoff in 5 steps, by two in 100."""
    if tf32 or dtype in (torch.float16, torch.bfloat16):
        return 16 * (TF32_ROUNDOFF if tf32 else ROUNDOFF[dtype])
    return 64 * math.sqrt(case.time) * ROUNDOFF[dtype]


class Checks:
    """Runs cases from a number on, prints their outcomes and writes them to a file."""

    def __init__(self, backend: Backend, file: Path, first: int) -> None:
        self.backend, self._file, self._first = backend, file, first
        self.count = 0
        if first == 0:
            file.unlink(missing_ok=True)

    def record(self, **found: Any) -> None:
        with self._file.open("a") as file:
            file.write(json.dumps(found) + "\n")

    def records(self) -> list[dict[str, Any]]:
        """Of all processes."""
        return [json.loads(line) for line in self._file.read_text().splitlines()]

    def run(self, kind: str, what: str, function: Any, *arguments: Any) -> None:
        """One case. `function` returns what is recorded; "ok" is its verdict."""
        self.count += 1
        if self.count <= self._first:
            return
        failed = False
        try:
            found = function(*arguments)
        except Exception as error:  # the others go on
            traceback.print_exc()
            found = {"ok": False, "error": f"{type(error).__name__}: {error}"[:500]}
            failed = True
        self.record(kind=kind, case=what, **found)
        print(f"{'ok' if found['ok'] else 'WRONG':6} {kind}: {what} {found}", flush=True)
        if failed and not self.backend.is_usable():
            os.execv(sys.executable, [sys.executable, *sys.argv, "--first", str(self.count)])


def relative_error(got: Tensors, want: Tensors) -> float:
    """The largest, relative to the tensor's largest number. NaN counts as infinite."""
    errors = [0.0]
    for name, right in want.items():
        difference = (got[name].double() - right).abs().max() if right.numel() else torch.zeros([])
        errors.append(float(difference / right.abs().max().clamp_min(1e-30)))
    return max(e if e == e else math.inf for e in errors)


def moved(tensors: Tensors, dtype: torch.dtype, device: str) -> Tensors:
    return {
        k: (v.to(dtype) if v.is_floating_point() else v).to(device).contiguous()
        for k, v in tensors.items()
    }


def is_masked(case: Case, given: Tensors, upstream: Tensors) -> Tensors:
    """Upstream gradients, zero in masked steps, as the backward pass takes them."""
    if not case.masked:
        return upstream
    valid = given["mask"].flip(1) if case.reversed else given["mask"]
    return upstream | {"y": upstream["y"] * valid[..., None]}


def compare(backend: Backend, case: Case, dtype: torch.dtype, tf32: bool, twice: bool) -> Any:
    """Results and gradients against float64; if `twice`, the bits of a second call too."""
    backend.allow_tf32(tf32)
    where = backend.device if twice else "cpu"
    given, upstream = reference.problem(case, where)
    upstream = is_masked(case, given, upstream)
    results, gradients = reference.results(case, given, upstream)
    args = moved(given, dtype, backend.device), moved(upstream, dtype, backend.device)
    found = []
    for _ in range(2 if twice else 1):
        out = backend.forward(case, args[0])
        found.append({**out, **backend.backward(case, args[0], out, args[1])})
    inference = backend.forward(case, args[0], is_training=False)
    got = {k: v.to(where) for k, v in found[0].items()}
    error = relative_error(got, {**results, **gradients})
    error = max(error, relative_error({k: v.to(where) for k, v in inference.items()}, results))
    allowed = tolerance(case, dtype, tf32)
    same = all(torch.equal(found[0][k], found[-1][k]) for k in found[0] if k != "saved")
    ok = error <= allowed and (same or case.by == "cudnn")  # whose bits may change
    return {"ok": ok, "error": error, "allowed": allowed, "same_bits": same}


def types_of(case: Case) -> list[tuple[torch.dtype, bool]]:
    """Types, with and without TF32. A rounded kink of relu has another gradient as a whole."""
    if case.cell == "rnn_relu":
        return [(torch.float32, False), (torch.float64, False)]
    types = [t for t in TYPES if case.by == "kernels" or t != torch.bfloat16]
    return [(t, False) for t in types] + [(torch.float32, True)]


def check_all(checks: Checks, small: bool) -> None:
    for twice, cases in ((False, SMALL), (True, [] if small else LARGE)):
        for case in cases:
            for dtype, tf32 in types_of(case):
                if twice and dtype == torch.float64:
                    continue
                kind = "tf32" if tf32 else str(dtype).removeprefix("torch.")
                what = f"{case} {kind}"
                checks.run("results", what, compare, checks.backend, case, dtype, tf32, twice)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--first", type=int, default=0, help="cases that other processes ran")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False  # of the reference
    options.out_dir.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    backend = Backend(options.library, options.device)
    checks = Checks(backend, options.out_dir / "results.jsonl", options.first)
    with backend.stream():
        check_all(checks, options.small)
        if options.device == "cuda" and not options.small:
            speed.measure(checks)
    records = checks.records()
    print(speed.table([row for r in records for row in r.get("microseconds_of_a_step", ())]))
    failed = [f"{r['kind']}: {r['case']}" for r in records if not r["ok"]]
    wrong = f"{len(failed)} of {checks.count} checks failed"
    verdict = wrong if failed else f"all {checks.count} checks passed"
    checks.record(kind="verdict", ok=not failed, seconds=time.monotonic() - begin)
    for what in failed[:20]:
        print("failed:", what)
    print(f"Verdict: {verdict} in {time.monotonic() - begin:.0f} s.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
