"""What a check is, and what comes out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

DTYPES = (tf.float32, tf.float16, tf.bfloat16)
# Relative to the largest element of a result. float32: the errors of a GPU's sigmoid and tanh are
# some units in the last place and accumulate over seventy steps; float64 likewise. 16-bit types:
# the saved activations that the backward pass reads are rounded, too. TF32 has float16's bits.
TOLERANCES = {tf.float32: 1e-4, tf.float16: 1e-2, tf.bfloat16: 8e-2, tf.float64: 1e-12}
TF32_TOLERANCE = TOLERANCES[tf.float16]


class Result(NamedTuple):
    """The outcome of a check.

    Attributes:
      difference: the largest difference from the expected results, relative to their largest
        element or 1, whichever is larger; NaN after an error.
      allowed: the largest difference of a check that passes.
      error: the error if the check failed to run; else empty.
      times: milliseconds of one call by what was measured; None unless the check measures.
    """

    difference: float
    allowed: float
    error: str = ""
    times: dict[str, float] | None = None

    @property
    def passed(self) -> bool:
        """Whether the difference is within the tolerance."""
        return not self.error and self.difference <= self.allowed


class Check(NamedTuple):
    """A check.

    Attributes:
      name: the op, what is special about the call, and the type.
      run: runs it on a device, such as "GPU:0".
    """

    name: str
    run: Callable[[str], Result]


def compare(got: Sequence[Any], want: Sequence[Any], allowed: float) -> Result:
    """Compares results.

    Args:
      got: arrays or tensors.
      want: those expected.
      allowed: the tolerance.

    Returns:
      The result.

    Raises:
      ValueError: the shapes differ.
    """
    # NumPy's maximum is NaN if an element is NaN. Python's may not be.
    differences = [_difference(g, w) for g, w in zip(got, want, strict=True)]
    return Result(float(np.max(differences)), allowed)


def _difference(got: Any, want: Any) -> float:
    got, want = (np.asarray(value, np.float64) for value in (got, want))
    if got.shape != want.shape:
        raise ValueError(f"a result has the shape {got.shape}, not {want.shape}")
    if want.size == 0:
        return 0.0
    return float(np.abs(got - want).max() / max(np.abs(want).max(), 1))
