"""The same bits at sizes at which a team of threads works: on repeated runs, on any number of
threads, and of a row in whatever batch it stands. Other sizes and processes: each op's own tests.
"""

import numpy as np
import pytest

from .calls import BATCH, CALLS, assert_same_bits, has_team

UNITS = [130, 256]  # whole blocks and a rest, and none


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("name", CALLS)
def test_threads_and_runs(rng: np.random.Generator, name: str, units: int) -> None:
    call = CALLS[name](rng, units).on_threads()
    found = []
    for threads in (1, 2, 3, 3, 1):
        found.append(call.run(threads))
        assert has_team(threads)
    assert all(a.any() for a in found[0].values())
    for other in found[1:]:
        assert_same_bits(other, found[0])


@pytest.mark.sampled
@pytest.mark.parametrize(("units", "sizes"), [(130, range(1, BATCH)), (256, range(1, BATCH, 6))])
@pytest.mark.parametrize("name", CALLS)
def test_rows_in_batches_of_all_sizes(
    rng: np.random.Generator, name: str, units: int, sizes: range
) -> None:
    """But for the gradients of weights, which sum over the rows."""
    call = CALLS[name](rng, units)
    whole = call.run()
    for size in sizes:
        rows = rng.choice(BATCH, size, replace=False)  # each at another position
        part = call.of_rows(rows)
        got = part.run()
        everything = range(size)
        assert_same_bits(part.rows_of(got, everything), call.rows_of(whole, rows))
