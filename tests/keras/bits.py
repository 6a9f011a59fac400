"""Runs the layers on fixed inputs and writes all results, for comparison between processes.

Usage: python bits.py FILE. Not a test itself: see test_determinism.py.
"""

import os
import sys
from pathlib import Path

import numpy as np

sys.path[0] = str(Path(__file__).parent)  # of pairs.py
sys.path.append(str(Path(__file__).parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")


def results() -> dict[str, np.ndarray]:
    """Results and gradients of layers with work for every thread."""
    from pairs import FAMILIES, Sizes, evaluate, make_layer, make_mask, random_inputs

    sizes, found = Sizes(batch=24, time=12, inputs=40, units=96), {}
    for family in FAMILIES:
        for dtype in "float32", "float64", "mixed_bfloat16":
            rng = np.random.default_rng(0)
            layer = make_layer(family, sizes, rng, dtype=dtype, **family.extras)
            mask = make_mask("holes", sizes.batch, sizes.time, rng)
            inputs = random_inputs(sizes, rng, family)
            inputs[1] = inputs[1][:, : layer.cell.output_size]  # h0, which a projection shortens
            evaluation = evaluate(layer, inputs, mask)
            values = dict(enumerate(evaluation.results)) | evaluation.gradients
            found |= {f"{family.name}-{dtype}-{k}": v for k, v in values.items()}
    return found


if __name__ == "__main__":
    np.savez(sys.argv[1], **results())
