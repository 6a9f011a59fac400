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
import itertools

import torch
from check_cases import OWN, SMALL, TYPES, Case
from check_core import CLUSTERS, CUDNN, GRID, NUMBERS, OWN_KERNELS, Core
from check_reference import params_of, random_problem, reference, swapped
from check_speed import compare_speed

# Relative to the largest element of a tensor: units of roundoff, for sums of up to some hundred
# terms over some dozen steps. TF32 has 10 bits of fraction.
TOLERANCES = {
    torch.float32: 34 * 2.0**-24,
    torch.float64: 34 * 2.0**-53,
    torch.float16: 34 * 2.0**-11,
    torch.bfloat16: 34 * 2.0**-8,
}
TF32_TOLERANCE = 34 * 2.0**-11


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
