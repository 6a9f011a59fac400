"""benchmarks/stacks.py: a sliding window computes what a call with the window does."""

import numpy as np
import pytest

import stacks


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_a_sliding_window_equals_the_window(weights: str) -> None:
    """Bit for bit, as the other rows of a stream do not matter."""
    stack = stacks.Stack(2, 48, 40, 5, "")
    session = stack.session(weights)
    sliding = stacks.Sliding(session, stack.steps)
    x = np.random.default_rng(1).standard_normal((12, stack.inputs)).astype(np.float32)
    outputs = [sliding(step).copy() for step in x]
    for end in range(stack.steps, len(x) + 1):
        want = session(x[None, end - stack.steps : end])[0, -1]
        np.testing.assert_array_equal(outputs[end - 1], want)


def test_the_table_has_a_row_for_each_stack() -> None:
    times = {"p50": 1500.0, "p99": 2e6, "max": 1234.5e3}
    lines = stacks.table({"2x100": dict.fromkeys(stacks.TYPES, times)}).splitlines()
    assert lines[2] == "| 2x100 " + "| 1.50 | 2000 | 1230 " * len(stacks.TYPES) + "|"
