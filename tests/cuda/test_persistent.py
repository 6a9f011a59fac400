"""All steps in one launch: its results are those of step by step; and when it is used."""

from pathlib import Path

import numpy as np
import pytest

from cuda.test_device import check

pytestmark = pytest.mark.cuda

# In units of roundoff near 1: the operands of the products and the results are rounded, and sums
# have another order. The cells' slopes below 1 keep the error from growing over the steps.
ROUNDINGS = 8
EPSILON = {"float": 2.0**-23, "half": 2.0**-10, "bfloat16": 2.0**-7}


def results(built: Path, folder: Path, **environment: str) -> tuple[set[tuple[int, int]], dict]:
    """The pairs of cooperative and cluster launches of all kinds of layers, and their results."""
    path = folder / f"{'_'.join(environment.values())}.npz"
    counts = check("large_layers", built, RESULTS=str(path), **environment)
    with np.load(path) as found:
        return set(map(tuple, counts.values())), dict(found)


def bound(name: str) -> float:
    dtype = next((d for d in EPSILON if d in name.split()), "bfloat16")
    return ROUNDINGS * EPSILON[dtype]


def largest_errors(found: dict, expected: dict) -> dict[str, float]:
    """Of each result, as a multiple of its bound."""
    assert found.keys() == expected.keys()
    return {
        name: float(np.abs(found[name] - value).max() / max(1, np.abs(value).max()) / bound(name))
        for name, value in expected.items()
    }


@pytest.fixture(scope="module")
def step_by_step(built, tmp_path_factory) -> dict:
    counts, found = results(
        built, tmp_path_factory.mktemp("steps"), TF_LSTM_OPS_CUDA_PERSISTENT="0"
    )
    assert counts == {(0, 0)}
    return found


@pytest.mark.parametrize("multiprocessors", ["132", "8", "6", "5", "3"])
@pytest.mark.parametrize("order", [{}, {"FAKE_REVERSE": "1"}])
def test_results_are_those_of_steps(built, tmp_path, step_by_step, multiprocessors, order):
    """With one to eight tiles in a block, in either order of threads."""
    counts, found = results(
        *(built, tmp_path),
        TF_LSTM_OPS_CUDA_PERSISTENT="1",
        FAKE_FLOAT="1",
        FAKE_MULTIPROCESSORS=multiprocessors,
        **order,
    )
    assert counts == {(2, 0)}  # forward and backward
    errors = largest_errors(found, step_by_step)
    assert max(errors.values()) < 1, errors
    assert all(np.abs(value).max() > 0 for value in found.values())


@pytest.mark.parametrize("multiprocessors", ["132", "12"])
@pytest.mark.parametrize("order", [{}, {"FAKE_REVERSE": "1"}])
def test_results_of_clusters_are_those_of_steps(
    built, tmp_path, step_by_step, multiprocessors, order
):
    """With a few rows of the batch in each cluster, and with all rows in one."""
    counts, found = results(
        *(built, tmp_path),
        TF_LSTM_OPS_CUDA_PERSISTENT="clusters",
        FAKE_FLOAT="1",
        FAKE_MULTIPROCESSORS=multiprocessors,
        **order,
    )
    assert counts == {(0, 2)}
    errors = largest_errors(found, step_by_step)
    assert max(errors.values()) < 1, errors


def test_tf32_has_ten_bits(built, tmp_path, step_by_step):
    _, found = results(built, tmp_path, TF_LSTM_OPS_CUDA_PERSISTENT="1")
    errors = largest_errors(found, step_by_step)
    of_float = [errors[name] for name in errors if bound(name) == ROUNDINGS * EPSILON["float"]]
    assert 1 < max(of_float) < EPSILON["half"] / EPSILON["float"]


@pytest.mark.parametrize("launches", ["1", "clusters"])
def test_missing_barriers_are_noticed(built, tmp_path, step_by_step, launches):
    environment = {"TF_LSTM_OPS_CUDA_PERSISTENT": launches, "FAKE_NO_BARRIERS": "1"}
    _, found = results(built, tmp_path, **environment)
    errors = largest_errors(found, step_by_step)
    assert not max(errors.values()) < 100  # NaN in memory that was not written yet


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        # The first call times forward and backward, each twice; further calls take the fastest.
        ({}, None),
        ({"FAKE_FASTEST": "5"}, [[6, 4], [2, 0]]),
        ({"FAKE_FASTEST": "6"}, [[4, 6], [0, 2]]),
        ({"TF_CUDNN_USE_AUTOTUNE": "0"}, [[0, 0], [0, 0]]),
        ({"FAKE_CAPTURES": "1"}, [[0, 0], [0, 0]]),
        ({"TF_LSTM_OPS_CUDA_PERSISTENT": "1"}, [[2, 0], [2, 0]]),
        ({"TF_LSTM_OPS_CUDA_PERSISTENT": "clusters"}, [[0, 2], [0, 2]]),
        ({"TF_LSTM_OPS_CUDA_PERSISTENT": "0"}, [[0, 0], [0, 0]]),
        # Timed and not chosen: wrong results, or a launch that fails.
        ({"FAKE_FASTEST": "5", "FAKE_NO_BARRIERS": "1"}, [[4, 4], [0, 0]]),
        ({"FAKE_FASTEST": "6", "FAKE_NO_BARRIERS": "1"}, [[4, 4], [0, 0]]),
        ({"FAKE_FASTEST": "5", "FAKE_IS_SHARED": "1"}, [[0, 6], [0, 2]]),
        # Too few multiprocessors for the grid.
        ({"TF_LSTM_OPS_CUDA_PERSISTENT": "1", "FAKE_MULTIPROCESSORS": "0"}, [[0, 2], [0, 2]]),
    ],
)
def test_when(built, environment, expected):
    counts = check("launches_of_kinds", built, **environment)
    first, second = counts.pop("plain, TF32")
    if expected is None:
        assert sum(first) == 8 + sum(second) and sum(second) <= 2
    else:
        assert [first, second] == expected
    # Dropout that differs from gate to gate, and types that tensor cores cannot multiply.
    assert all(kind == [[0, 0], [0, 0]] for kind in counts.values())
