"""PyTorch's nn.LSTM, nn.GRU and nn.RNN give the same results and gradients.

The largest errors over all cases are printed at the end of the module.
"""

import itertools

import numpy as np
import pytest

from block_cell.grid import arrays, random_like, tensors
from oracle.cudnn_rnn import Arguments, Model, Results

from .accuracy import PROMISED, relative_errors
from .grid import MODES, Case, lengths_of, random_arguments, reference, tape_grads

pytestmark = pytest.mark.torch
pytest.importorskip("torch", reason="PyTorch, which this compares with, is not installed")

from oracle import torch_rnn  # noqa: E402

# Rounding in float64 of values up to a hundred; the tolerance is far larger.
FLOAT64 = 1e-10

LAYERS_AND_DIRECTIONS = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2)]  # layers, directions
MODELS = [Model(mode, 7, 9, *sizes) for mode in MODES for sizes in LAYERS_AND_DIRECTIONS]
MODELS += [Model("lstm", 7, 9, *sizes, num_proj=4) for sizes in LAYERS_AND_DIRECTIONS]
# PyTorch has no sequences of length zero.
CASES = [
    Case(model, 6, 5, lengths) for model, lengths in itertools.product(MODELS, ["full", "no zero"])
]


@pytest.fixture(scope="module")
def summary(request):
    """The largest error of each kind, written to the terminal after the last test."""
    worst: dict[str, float] = {}
    yield worst
    capture = request.config.pluginmanager.get_plugin("capturemanager")
    with capture.global_and_fixture_disabled():
        print()
        for kind, error in worst.items():
            print(f"Largest error against PyTorch, {kind}: {error:.2g}")


def largest_errors(case, dtype, rng):
    """Of our results and gradients in `dtype`, from PyTorch's in float64 on the same inputs:
    absolute, and relative to the largest number of the same tensor."""
    arguments = random_arguments(rng, case, dtype)
    upstream = random_like(rng, reference(case, arguments), dtype)
    want = torch_rnn.run(case.model, arguments, upstream, lengths_of(case))
    got = tape_grads(case, tensors(arguments, dtype), tensors(upstream, dtype))
    absolute = max(
        np.max(np.abs(a - b))
        for ours, theirs in zip(got, want, strict=True)
        for a, b in zip(arrays(ours), theirs, strict=True)
    )
    relative = (relative_errors(*pair).values() for pair in zip(got, want, strict=True))
    return float(absolute), max(itertools.chain(*relative))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_float64(rng, summary, case):
    error, _ = largest_errors(case, "float64", rng)
    kind = "float64, absolute"
    summary[kind] = max(error, summary.get(kind, 0.0))
    assert error < FLOAT64


@pytest.mark.parametrize("case", CASES, ids=str)
def test_float32(rng, summary, case):
    _, error = largest_errors(case, "float32", rng)
    kind = "float32, relative to the tensor's largest number"
    summary[kind] = max(error, summary.get(kind, 0.0))
    assert error < PROMISED


def test_the_comparison_is_not_one_of_constants(rng):
    """PyTorch's results depend on every argument."""
    case = CASES[0]
    arguments = random_arguments(rng, case)
    upstream = random_like(rng, reference(case, arguments))
    results, gradients = torch_rnn.run(case.model, arguments, upstream)
    assert all(np.any(a) for a in (*results, *gradients))
    for field in Arguments._fields:
        moved = arguments._replace(**{field: 1.1 * getattr(arguments, field)})
        others, _ = torch_rnn.run(case.model, moved, upstream)
        for name in Results._fields:
            assert np.abs(getattr(others, name) - getattr(results, name)).max() > 1e-4, name
