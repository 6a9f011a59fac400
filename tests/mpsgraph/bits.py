"""Runs both ops on fixed inputs and writes all results, for comparison between processes.

Usage: python bits.py FILE. Not a test itself: see test_modes.py.
"""

import os
import sys
from pathlib import Path

import numpy as np

sys.path[0] = str(Path(__file__).parents[1])  # the tests folder instead of this one
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

REPEATS = 3


def results() -> dict[str, np.ndarray]:
    """A small call and one with work for every thread, of every type."""
    from mpsgraph.cases import DTYPES, Case, random_arguments, random_like
    from mpsgraph.grid import call, call_grads, reference, tensor, tensors
    from oracle.mpsgraph import Results

    found = {}
    small = Case("bidirectional", activation="relu", output_gate_activation="hard_sigmoid")
    for case in (small, Case("bidirectional", time=6, batch=16, inputs=20, units=64)):
        rng = np.random.default_rng(0)
        for dtype in DTYPES:
            arguments, mask = random_arguments(rng, case, dtype)
            upstream = random_like(rng, reference(case, arguments, mask), dtype)
            given = tensors(arguments, dtype), tensor(mask, dtype)
            by = Results(*tensors(upstream, dtype))
            for repeat in range(REPEATS):
                outputs = call(case, *given)
                gradients = call_grads(case, *given, outputs, by)
                for field, a in (outputs._asdict() | gradients._asdict()).items():
                    key = f"{case.units}-{dtype}-{field}"
                    previous = found.setdefault(key, a.numpy())
                    assert previous.tobytes() == a.numpy().tobytes(), (key, repeat)
    # NumPy's files do not know bfloat16.
    return {k: np.frombuffer(a.tobytes(), np.uint8) for k, a in found.items()}


if __name__ == "__main__":
    np.savez(sys.argv[1], **results())
