"""The check that each thread of a benchmark has a core, by the rule of the package.

`benchmarks/engine` loads this file by its path. The file needs the standard library only.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tf_lstm_ops._capacity import LEAST, WHY_LOW, Capacity, measure, processors
else:  # by its path, because the package need not be installed
    _RULE = runpy.run_path(
        str(Path(__file__).resolve().parents[2] / "tf_lstm_ops" / "_capacity.py")
    )
    LEAST, WHY_LOW = _RULE["LEAST"], _RULE["WHY_LOW"]
    Capacity, measure, processors = (_RULE[name] for name in ("Capacity", "measure", "processors"))

__all__ = ["HELP", "LEAST", "OPTION", "Capacity", "TooLow", "check", "measure", "processors"]

OPTION = "--any-capacity"
HELP = f"measure also if the capacity of the processors is below {LEAST} per thread"


class TooLow(Exception):
    """The capacity is too low for a benchmark. The message says what to do."""


def check(threads: int, any_capacity: bool) -> Capacity:
    """Measures the capacity and prints it. It takes about a second.

    Args:
      threads: the number of threads of the benchmark.
      any_capacity: whether to accept a low capacity.

    Returns:
      The capacity.

    Raises:
      TooLow: it is below LEAST per thread, and `any_capacity` is false.
    """
    found = measure(threads)
    print(f"capacity: {found}", flush=True)
    if found.is_low and not any_capacity:
        raise TooLow(
            f"the processors have a capacity of {found}; a benchmark needs {LEAST * threads:.1f}. "
            f"{WHY_LOW} Stop other processes, choose fewer threads with --threads, or measure "
            f"nevertheless with {OPTION}"
        )
    return found
