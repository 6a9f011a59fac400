"""Runs ops on fixed inputs and writes all results, for comparison between processes.

Usage: python bits.py FILE. Not a test itself: see test_determinism.py.
"""

import os
import sys
from pathlib import Path

import numpy as np

sys.path[0] = str(Path(__file__).parents[1])  # the tests folder instead of this one
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

# Enough work in the second for every thread; the first is smaller than a vector.
SIZES = [(2, 3, 5, 7), (12, 24, 40, 96)]
REPEATS = 3


def results() -> dict[str, np.ndarray]:
    from block_cell.grid import (
        DTYPES,
        OPS,
        Sizes,
        arrays,
        call,
        call_grad,
        random_inputs,
        tensors,
    )

    found = {}
    for op in OPS.values():
        for sizes in SIZES:
            for dtype in DTYPES:
                rng = np.random.default_rng(1)
                inputs = tensors(random_inputs(rng, op, Sizes(*sizes), dtype), dtype)
                length = sizes[0] - 1
                for repeat in range(REPEATS):
                    saved = call(op, inputs, length, use_peephole=True)
                    gradients = call_grad(
                        op, inputs, saved, saved.cs, saved.h, length, use_peephole=True
                    )
                    for values in (saved, gradients):
                        for field, a in zip(values._fields, arrays(values), strict=True):
                            key = f"{op.name}-{sizes}-{dtype}-{type(values).__name__}-{field}"
                            previous = found.setdefault(key, a)
                            assert previous.tobytes() == a.tobytes(), (key, repeat)
    return found


if __name__ == "__main__":
    np.savez(sys.argv[1], **results())
