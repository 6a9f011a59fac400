"""The capacity of the processors: how many threads' work they do at the same time.

Two virtual processors may share a core, and other processes may take a part of one. Times on
several threads then say little about a machine whose threads have a core each.

Each of N processes is pinned to a processor of its own and repeats arithmetic on data in its cache.
The capacity is the sum of their rates while all of them run, divided by the rate of one that runs
alone. It is N where each thread has a core.

The benchmarks load this file by its path. The file needs the standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

LEAST = 0.9  # per thread, for times that mean something
WHY_LOW = "Other processes are running, or processors share a core."
ROUNDS = 5
SECONDS = 0.09  # of a loop; a round has two
# SHA-3 updates 25 independent words, so that one loop keeps the arithmetic units of a core busy.
DATA = bytes(2**14)


class Capacity(NamedTuple):
    """A measured capacity.

    Attributes:
      threads: the number of loops that ran at the same time.
      value: their rates divided by that of one alone.
    """

    threads: int
    value: float

    @property
    def is_low(self) -> bool:
        """Whether times that are measured now say little."""
        return self.value < LEAST * self.threads

    def __str__(self) -> str:
        return f"{self.value:.2f} of {self.threads} threads"


def measure(threads: int) -> Capacity:
    """Measures the capacity.

    Args:
      threads: the number of loops to run at the same time.

    Returns:
      The median of the rates of all loops, divided by the highest rate of one alone.
    """
    pinned = [str(p) for p in processors(threads)] or [""]  # "": the system cannot pin one
    alone, together = [], []
    with contextlib.ExitStack() as stack:
        loops = [
            stack.enter_context(_start(pinned[number % len(pinned)])) for number in range(threads)
        ]
        for number in range(ROUNDS):
            alone += _rates(loops[number % threads :][:1])
            together.append(sum(_rates(loops)))
    return Capacity(threads, statistics.median(together) / max(alone))


def processors(threads: int) -> list[int]:
    """Processors to pin threads to.

    Args:
      threads: their number.

    Returns:
      The numbers of processors of different cores as far as possible, at most `threads`; none if
      no process can be pinned.
    """
    if not hasattr(os, "sched_getaffinity"):
        return []
    cores: dict[str, list[int]] = {}
    for processor in sorted(os.sched_getaffinity(0)):
        cores.setdefault(_core(processor), []).append(processor)
    ranked = sorted((rank, p) for core in cores.values() for rank, p in enumerate(core))
    return [processor for _, processor in ranked][:threads]


def core_count() -> int:
    """The number of cores.

    Returns:
      How many the processors that this process may use belong to; all processors where the system
      cannot pin a process.
    """
    if not hasattr(os, "sched_getaffinity"):
        return os.cpu_count() or 1
    return len({_core(processor) for processor in os.sched_getaffinity(0)})


def _core(processor: int) -> str:
    """The processors of the core, as text; the processor itself where the system does not say."""
    folder = Path(f"/sys/devices/system/cpu/cpu{processor}/topology")
    try:
        return (folder / "thread_siblings_list").read_text()
    except OSError:
        return str(processor)


def _start(processor: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", __file__, processor],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # an interrupt from the keyboard must reach the parent only
    )


def _rates(loops: Sequence[subprocess.Popen[str]]) -> list[float]:
    """Runs loops at the same time; returns the rate of each."""
    for loop in loops:
        assert loop.stdin
        loop.stdin.write("\n")
        loop.stdin.flush()
    return [float(loop.stdout.readline()) for loop in loops if loop.stdout]


def _rate(seconds: float) -> float:
    """Repeats the arithmetic for so many seconds; returns the repetitions per second."""
    start, repetitions, passed = time.perf_counter(), 0, 0.0
    while passed < seconds:
        hashlib.sha3_256(DATA)
        repetitions += 1
        passed = time.perf_counter() - start
    return repetitions / passed


def main(processor: str) -> None:
    """Answers each line of the standard input with the rate of a loop.

    Args:
      processor: the one to run on; empty for any.
    """
    if processor:
        os.sched_setaffinity(0, {int(processor)})
    for _ in sys.stdin:
        print(_rate(SECONDS), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
