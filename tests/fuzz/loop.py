"""Runs calls by their numbers, one after the other, and counts them."""

import collections
import mmap
import sys
import time
import traceback
from collections.abc import Callable, Collection
from typing import Any


class Counts(collections.Counter[str]):
    """What ran: by call and by way."""


def run(
    one: Callable[[int, Counts], None],
    numbers: range,
    record: mmap.mmap,
    command: str,
    failures: int = 1,
    each: int | None = None,
    names: Collection[str] = (),
) -> Counts:
    """Runs `one` for these numbers. Each number is written to `record` before its call, so that
    another process knows which call has ended this one. Ends early after so many failures; or, if
    `each` is given, when each of `names` has had so many calls. `command` and a number repeat a
    call."""
    counts, begin, told = Counts(), time.monotonic(), time.monotonic()
    for number in numbers:
        record[:8] = number.to_bytes(8, "little")
        try:
            one(number, counts)
        except Exception:
            counts["failed"] += 1
            traceback.print_exc(limit=-4)
            repeat = f"{command} --first {number} --calls 1"
            print(f"To repeat: {repeat}\n", flush=True, file=sys.stderr)
            if counts["failed"] == failures:
                break
        if each is not None and all(counts[name] >= each for name in names):
            break
        if time.monotonic() - told > 10:
            told = time.monotonic()
            tell(number + 1 - numbers.start, told - begin, counts)
    tell(number + 1 - numbers.start, time.monotonic() - begin, counts)
    return counts


def tell(done: int, seconds: float, counts: Any) -> None:
    print(
        f"{done} calls in {seconds:.0f} s: {counts['accepted']} accepted, "
        f"{counts['refused']} refused, {counts['failed']} failed",
        flush=True,
        file=sys.stderr,
    )
