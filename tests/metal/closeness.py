"""Comparison of the fake frameworks' float32 results with float64 references."""

import numpy as np

# A float32 result of one operation: half a unit for the rounding, a few for tanh and exp.
ONE_OPERATION = 4 * 2.0**-24


def assert_close(got, want, units: float = 1) -> None:
    """Equal shapes, and differences of at most `units` operations' roundings."""
    assert got.shape == np.shape(want)
    largest = max(1, np.max(np.abs(want), initial=0))
    np.testing.assert_allclose(got, want, rtol=0, atol=units * ONE_OPERATION * largest)


def normal(rng, *shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)
