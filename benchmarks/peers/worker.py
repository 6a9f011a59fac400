"""The process of one peer. It is started as a file, not as a module of the package.

It reads pickled requests from its standard input and answers each with one pickled pair on its
original standard output; what libraries print goes to standard error. A request is the name of one
of Worker's methods and its arguments; an answer is ("done", value), or ("failed", message) after an
exception.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import importlib.util
import os
import pickle
import resource
import sys
import time
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from peers.cases import Row
    from peers.frameworks import Prepared
    from tf_lstm_ops._arrays import Array


class Worker:
    """Answers the requests, which are its public methods."""

    _prepared: Prepared | None = None

    def build(self, module: str, row: Row, threads: int, options: dict[str, Any]) -> None:
        """Makes the call to measure and releases the call of the previous row.

        Args:
          module: the peer's module below peers.frameworks, or any other with a dot in its name.
          row: the row.
          threads: the number of threads.
          options: for the module's `build`.
        """
        from peers import cases, models

        self._prepared = None
        gc.collect()
        name = module if "." in module else f"peers.frameworks.{module}"
        build = importlib.import_module(name).build
        make_problem = models.make_problem if row.model else cases.make_problem
        self._prepared = build(row, make_problem(row), threads, **options)

    def results(self) -> dict[str, Array]:
        """Calls once.

        Returns:
          The results by name, see frameworks.Prepared.
        """
        assert self._prepared
        return self._prepared.results(self._prepared.call())

    def seconds(self, warm: float, timed: float) -> float:
        """Times calls.

        Args:
          warm: the seconds of untimed calls before the timed ones.
          timed: the seconds of timed calls. Both parts have at least one call.

        Returns:
          The mean time of a timed call, divided by its number of repetitions.
        """
        assert self._prepared
        self._mean_seconds(self._prepared, warm)
        return self._mean_seconds(self._prepared, timed) / self._prepared.repeats

    @staticmethod
    def _mean_seconds(prepared: Prepared, least: float) -> float:
        """Repeats the call for at least so many seconds; returns the mean time of a call."""
        start, calls, passed = time.perf_counter(), 0, 0.0
        while not calls or passed < least:
            prepared.call()
            calls += 1
            passed = time.perf_counter() - start
        return passed / calls

    def memory(self, module: str, row: Row, threads: int, options: dict[str, Any]) -> int:
        """Measures the memory of the first call of a row, after a call of a tiny row.

        Args:
          module, row, threads, options: those of `build`.

        Returns:
          The bytes by which the process' peak memory exceeds its memory before the call.
        """
        tiny = dataclasses.replace(
            row, batch=2, time=4, inputs=8, units=8, projection=min(row.projection, 4)
        )
        self.build(module, tiny, threads, options)
        self.results()
        self.build(module, row, threads, options)
        assert self._prepared
        gc.collect()
        with contextlib.suppress(AttributeError, OSError, TypeError):  # in glibc only
            ctypes.CDLL(None).malloc_trim(0)  # the call could use freed memory without any growth
        with contextlib.suppress(OSError):  # resets the peak on Linux; other systems lack the file
            Path("/proc/self/clear_refs").write_text("5")
        before = _peak_memory()
        self._prepared.call()
        return _peak_memory() - before


def _peak_memory() -> int:
    """In bytes. On Linux ru_maxrss includes the peak of the process that started this one."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _install_empty_package() -> None:
    """Makes tf_lstm_ops an empty package, since its own __init__ would import TensorFlow."""
    installed = importlib.util.find_spec("tf_lstm_ops")
    assert installed
    package = types.ModuleType("tf_lstm_ops")
    package.__path__ = list(installed.submodule_search_locations or ())
    sys.modules["tf_lstm_ops"] = package


def main(is_ours: bool) -> None:
    """Answers requests until the standard input ends.

    Args:
      is_ours: whether the peer imports tf_lstm_ops itself.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # Not this file's folder: its modules would hide others of the same names.
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    if not is_ours:
        _install_empty_package()
    worker = Worker()
    while True:
        try:
            method, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = "done", getattr(worker, method)(*arguments)
        except Exception as error:
            message = f"{type(error).__name__}: {error}".splitlines()[0]
            answer = "failed", message
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main(is_ours=sys.argv[1] == "ours")
