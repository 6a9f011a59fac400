"""Runs the family on fixed inputs and writes all results, for comparison between processes.

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
    """Small calls, and some with work for every thread, of different lengths. Dropout is drawn
    anew for each repeat and so is left out."""
    from cudnn_rnn.cases import DTYPES, GATES, Case, arguments, call

    found = {}
    for mode in GATES:
        proj = 24 if mode == "lstm" else 0
        small = Case(mode=mode, layers=2, directions=2, time=3, batch=2)
        large = Case(mode, 2, 2, inputs=40, units=96, proj=proj, time=12, batch=24)
        for case, lengths in ((small, [1, 3]), (large, [k % 13 for k in range(24)])):
            for dtype in DTYPES:
                values = arguments("CudnnRNNBackpropV3", case, dtype, lengths)
                inputs = {k: values[k] for k in case.shapes("CudnnRNNV3")}
                for repeat in range(REPEATS):
                    outputs = call("CudnnRNNV3", case, inputs)._asdict()
                    outputs |= call("CudnnRNNBackpropV3", case, values)._asdict()
                    for field, a in outputs.items():
                        key = f"{mode}-{case.units}-{dtype}-{field}"
                        previous = found.setdefault(key, a.numpy())
                        assert previous.tobytes() == a.numpy().tobytes(), (key, repeat)
    # NumPy's files do not know bfloat16.
    return {k: np.frombuffer(a.tobytes(), np.uint8) for k, a in found.items()}


if __name__ == "__main__":
    np.savez(sys.argv[1], **results())
