"""How exact a result must be, and why.

Against the oracle, the rule of `block_cell.accuracy`: not more than twice the error that a plain
evaluation of the equations makes in the same type, with a floor of a few units of roundoff. On top
of that stands what the package promises in float32: an error of at most 2e-6 of the largest number
in the tensor. That is 34 units of roundoff: sums of up to some hundred terms, smooth functions, and
the few steps and layers of these tests, whose errors a saturating state does not let grow.
"""

from typing import Any

import numpy as np

from block_cell.accuracy import Bounds, Evaluation, assert_accurate, bounds, largest
from block_cell.grid import arrays

PROMISED = 2e-6


def relative_errors(got: Any, want: Any) -> dict[str, float]:
    """The largest error of each tensor, relative to the tensor's largest number."""
    errors = {}
    for name, value, right in zip(want._fields, arrays(got), want, strict=True):
        assert value.shape == right.shape, name
        error, size = largest(value - right), largest(right)
        assert np.isfinite(error), name
        errors[name] = error / size if size else error
    return errors


def assert_right(got: Any, evaluate: Evaluation, dtype: str) -> Bounds:
    limits = bounds(evaluate, dtype)
    assert_accurate(got, limits)
    if dtype == "float32":
        errors = relative_errors(got, limits.want)
        assert max(errors.values()) <= PROMISED, errors
    return limits


def assert_same_bits(got: Any, want: Any) -> None:
    """Of named tensors or arrays. All types are converted to float64 exactly; NumPy cannot read a
    scalar tensor in bfloat16."""
    for k, (a, b) in enumerate(zip(arrays(got), arrays(want), strict=True)):
        np.testing.assert_array_equal(a, b, err_msg=f"tensor {k}")
