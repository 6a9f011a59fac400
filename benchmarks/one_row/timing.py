"""Percentiles of the time of a call, measured in interleaved rounds."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

CALLS = 2500  # of a round
SECONDS = 0.4  # of a round at most
BATCH = 50  # calls between two readings of the clock, for the median in C
LEAST = 5  # calls of a round at least
WARM_SECONDS = 0.02
# Between two peers: the threads of some libraries spin for a while after a call.
REST_SECONDS = 0.02


class Percentiles(NamedTuple):
    """Seconds of a call.

    Attributes:
      p50: the median.
      p99: the 99th percentile.
      calls: the number of calls.
    """

    p50: float
    p99: float
    calls: int


Sample = Callable[[], Percentiles]  # measures a round


def percentiles(seconds: list[float]) -> Percentiles:
    """The percentiles of measured times; each is one of them."""
    ordered = sorted(seconds)
    last = len(ordered) - 1
    return Percentiles(ordered[round(last * 0.5)], ordered[round(last * 0.99)], len(ordered))


def sample_of(call: Callable[[], object]) -> Sample:
    """The rounds of a Python function. Its time includes that of reading the clock, 0.05 µs."""

    def sample() -> Percentiles:
        clock = time.perf_counter
        end = clock() + WARM_SECONDS
        call()
        while clock() < end:
            call()
        times: list[float] = []
        end = clock() + SECONDS
        while len(times) < CALLS and (len(times) < LEAST or clock() < end):
            begin = clock()
            call()
            times.append(clock() - begin)
        return percentiles(times)

    return sample


def interleaved(samples: Mapping[str, Sample], rounds: int) -> dict[str, Percentiles]:
    """Measures in rounds, in each of which the samples take turns.

    Args:
      samples: by name.
      rounds: their number.

    Returns:
      By name, the medians of the percentiles of the rounds, and the number of all calls.
    """
    found: dict[str, list[Percentiles]] = {name: [] for name in samples}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, sample in samples.items():
                found[name].append(sample())
                time.sleep(REST_SECONDS)
    finally:
        gc.enable()
    return {
        name: Percentiles(
            statistics.median(p.p50 for p in of_rounds),
            statistics.median(p.p99 for p in of_rounds),
            sum(p.calls for p in of_rounds),
        )
        for name, of_rounds in found.items()
    }
