"""Times of both passes on the GPU, beside torch.nn."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from check_cases import LARGE, Case, Tensors
from check_core import CUDNN, CUDNN_ALGORITHMS, Core
from check_reference import params_of, random_problem


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
