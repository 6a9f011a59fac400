"""All steps in one launch: the same numbers as step by step, and when they are."""

from pathlib import Path

import numpy as np
import pytest

from cuda.test_device import check

pytestmark = pytest.mark.cuda

# Of a number next to 1: rounding of the products' operands, or of results, which the steps pass on.
# Sums in another order change them by as much, and the cells' slopes below 1 let little of it grow.
ROUNDINGS = 8
EPSILON = {"float": 2.0**-23, "half": 2.0**-10, "bfloat16": 2.0**-7}


def results(built: Path, folder: Path, **environment: str) -> tuple[set[tuple[int, int]], dict]:
    """Cooperative launches, and those of clusters, of any kind of layer, and its results."""
    path = folder / f"{'_'.join(environment.values())}.npz"
    counts = check("large_layers", built, RESULTS=str(path), **environment)
    with np.load(path) as found:
        return set(map(tuple, counts.values())), dict(found)


def bound(name: str) -> float:
    dtype = next((d for d in EPSILON if d in name.split()), "bfloat16")
    return ROUNDINGS * EPSILON[dtype]


def largest_errors(found: dict, expected: dict) -> dict[str, float]:
    """Of each result, in bounds."""
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
@pytest.mark.parametrize("order", [{}, {"STAND_IN_REVERSE": "1"}])
def test_results_are_those_of_steps(built, tmp_path, step_by_step, multiprocessors, order):
    """With one to eight rows of tiles in a block, whichever thread comes first."""
    counts, found = results(
        *(built, tmp_path),
        TF_LSTM_OPS_CUDA_PERSISTENT="1",
        STAND_IN_FLOAT="1",
        STAND_IN_MULTIPROCESSORS=multiprocessors,
        **order,
    )
    assert counts == {(2, 0)}  # forward and backward
    errors = largest_errors(found, step_by_step)
    assert max(errors.values()) < 1, errors
    assert all(np.abs(value).max() > 0 for value in found.values())


@pytest.mark.parametrize("multiprocessors", ["132", "12"])
@pytest.mark.parametrize("order", [{}, {"STAND_IN_REVERSE": "1"}])
def test_results_of_clusters_are_those_of_steps(
    built, tmp_path, step_by_step, multiprocessors, order
):
    """With a few rows of the batch in each cluster, and with all of them in one."""
    counts, found = results(
        *(built, tmp_path),
        TF_LSTM_OPS_CUDA_PERSISTENT="clusters",
        STAND_IN_FLOAT="1",
        STAND_IN_MULTIPROCESSORS=multiprocessors,
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
    environment = {"TF_LSTM_OPS_CUDA_PERSISTENT": launches, "STAND_IN_NO_BARRIERS": "1"}
    _, found = results(built, tmp_path, **environment)
    errors = largest_errors(found, step_by_step)
    assert not max(errors.values()) < 100  # NaN, where nobody has written yet


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        # Forward and backward, each timed twice in the first call; then as was faster.
        ({}, None),
        ({"STAND_IN_FASTEST": "5"}, [[6, 4], [2, 0]]),
        ({"STAND_IN_FASTEST": "6"}, [[4, 6], [0, 2]]),
        ({"TF_CUDNN_USE_AUTOTUNE": "0"}, [[0, 0], [0, 0]]),
        ({"STAND_IN_CAPTURES": "1"}, [[0, 0], [0, 0]]),
        ({"TF_LSTM_OPS_CUDA_PERSISTENT": "1"}, [[2, 0], [2, 0]]),
        ({"TF_LSTM_OPS_CUDA_PERSISTENT": "clusters"}, [[0, 2], [0, 2]]),
        ({"TF_LSTM_OPS_CUDA_PERSISTENT": "0"}, [[0, 0], [0, 0]]),
        # Tried, and never again: it has other numbers, or no room.
        ({"STAND_IN_FASTEST": "5", "STAND_IN_NO_BARRIERS": "1"}, [[4, 4], [0, 0]]),
        ({"STAND_IN_FASTEST": "6", "STAND_IN_NO_BARRIERS": "1"}, [[4, 4], [0, 0]]),
        ({"STAND_IN_FASTEST": "5", "STAND_IN_IS_SHARED": "1"}, [[0, 6], [0, 2]]),
        # No card without enough of them.
        ({"TF_LSTM_OPS_CUDA_PERSISTENT": "1", "STAND_IN_MULTIPROCESSORS": "0"}, [[0, 2], [0, 2]]),
    ],
)
def test_when(built, environment, expected):
    counts = check("launches_of_kinds", built, **environment)
    first, second = counts.pop("plain, TF32")
    if expected is None:
        assert sum(first) == 8 + sum(second) and sum(second) <= 2
    else:
        assert [first, second] == expected
    # Each gate with an h of its own, and numbers that tensor cores do not know.
    assert all(kind == [[0, 0], [0, 0]] for kind in counts.values())
