"""Starts a worker for each peer, compares their results with ours and times them in rounds."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peers import worker
from peers.cases import Row
from peers.frameworks import Peer
from tf_lstm_ops._arrays import Array

# Of one peer in one round. After an idle time, the operating system may run all threads of a peer
# on one processor for up to 50 ms. The untimed calls take longer than that.
WARM_SECONDS = 0.06
ROUND_SECONDS = 0.035
ANSWER_SECONDS = 600.0  # a worker that gives no answer within this time has failed
MEMORY_PEERS = ("ours", "keras", "torch")  # of the rows of training

# Relative to the largest element of an array. In the rows of rows.ROWS other orders of summation
# and other approximations of tanh cause up to 2e-6; a wrong gate, step or sign more than 1e-2.
TOLERANCE = 2e-5
# bfloat16 has 8 significant bits; they cause up to 6e-3.
TOLERANCE_16 = 3e-2


class WorkerFailed(Exception):
    """A worker could not answer a request, or its process has ended."""


@dataclass
class Measurement:
    """The measurement of a peer in a row.

    Attributes:
      status: "measured"; "differs" if its results differ from ours; "failed"; "not installed".
      message: the reason for a status other than "measured".
      values: the time of a call in each round, in seconds; or one value, in bytes.
      ratios: each value divided by ours of the same round.
      memory: bytes, the growth of a new process' peak memory by its first call; None if it was not
        measured.
    """

    status: str
    message: str = ""
    values: list[float] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    memory: int | None = None


class Process:
    """A worker and the pipes to it.

    Args:
      peer: the peer that the worker runs.
      threads: its number of threads, unless the peer has its own.
    """

    def __init__(self, peer: Peer, threads: int) -> None:
        self._peer, self._threads = peer, peer.threads or threads
        # The file and the process live as long as this object.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self._process = subprocess.Popen(
            [sys.executable, worker.__file__, "ours" if peer.ours else "other"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **_environment(self._threads)},
            start_new_session=True,  # an interrupt from the keyboard must reach the parent only
        )

    def send(self, method: str, *arguments: Any) -> None:
        """Sends a request without waiting for the answer.

        Args:
          method: a public method of worker.Worker.
          *arguments: its arguments.
        """
        assert self._process.stdin
        with contextlib.suppress(BrokenPipeError):  # `receive` reports it
            pickle.dump((method, arguments), self._process.stdin)
            self._process.stdin.flush()

    def send_row(self, method: str, row: Row) -> None:
        """Sends a request that builds a row.

        Args:
          method: "build" or "memory".
          row: the row.
        """
        self.send(method, self._peer.module, row, self._threads, dict(self._peer.options))

    def receive(self) -> Any:
        """Waits for the answer to the earliest request that has none yet.

        Returns:
          The value that the method returned.

        Raises:
          WorkerFailed: the method raised an exception, or the worker does not answer.
        """
        assert self._process.stdout
        if not select.select([self._process.stdout], [], [], ANSWER_SECONDS)[0]:
            self.close()
            raise WorkerFailed(f"gave no answer in {ANSWER_SECONDS:.0f} s")
        try:
            status, value = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError):
            raise WorkerFailed(self._reason()) from None
        if status == "failed":
            raise WorkerFailed(value)
        return value

    def ask(self, method: str, *arguments: Any) -> Any:
        """Sends a request and waits for the answer.

        Args:
          method: a public method of worker.Worker.
          *arguments: its arguments.

        Returns:
          The value that the method returned.
        """
        self.send(method, *arguments)
        return self.receive()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()

    def _reason(self) -> str:
        """Why the worker does not answer."""
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self.close()
            return "it wrote something that is not an answer"
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return f"its process ended with status {status}" + (f": {lines[-1]}" if lines else "")


def _environment(threads: int) -> dict[str, str]:
    """Variables that have an effect only at the start of a process. The peers set the others."""
    number = str(threads)
    return {
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "KERAS_BACKEND": "tensorflow",
        "CUDA_VISIBLE_DEVICES": "",
        "JAX_PLATFORMS": "cpu",
        **{name: number for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "PJRT_NPROC", "NPROC")},
    }


class Bench:
    """The workers of a run: one process for each peer, started for its first row.

    Args:
      peers: the peers to measure, by name.
      threads: the threads of each peer.
      rounds: the number of rounds per peer.
      memory: whether to measure the memory of MEMORY_PEERS in the rows of training, too.
    """

    def __init__(
        self, peers: Mapping[str, Peer], threads: int, rounds: int, memory: bool = False
    ) -> None:
        self._peers, self._threads, self._rounds = peers, threads, rounds
        self._with_memory = memory
        self._processes: dict[str, Process] = {}

    def run(self, row: Row, ready: Callable[[str, str], None]) -> dict[str, Measurement]:
        """Measures a row.

        Args:
          row: the row. Those of its peers that this run has are measured.
          ready: called with the name and the status of each peer once its results are compared.

        Returns:
          The measurement of each peer by name.
        """
        names = [name for name in row.peers if name in self._peers]
        found = self._build(row, names, ready)
        running = [name for name in names if found[name].status == "measured"]
        ours = row.peers[0]
        if ours not in running:
            return found
        if row.measure == "memory":
            self._measure_memory(row, running, found)
            for name in running:
                if (memory := found[name].memory) is not None:
                    found[name].values = [memory]
        else:
            self._take_turns(running, found)
            if self._with_memory and row.group == "training":
                self._measure_memory(row, [n for n in running if n in MEMORY_PEERS], found)
        for name in running:
            pairs = zip(found[name].values, found[ours].values, strict=False)
            found[name].ratios = [theirs / mine for theirs, mine in pairs]
        return found

    def close(self) -> None:
        """Ends all processes."""
        while self._processes:
            self._processes.popitem()[1].close()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _build(
        self, row: Row, names: Sequence[str], ready: Callable[[str, str], None]
    ) -> dict[str, Measurement]:
        """Builds all peers at the same time and compares the results. This is not timed."""
        found: dict[str, Measurement] = {}
        installed = [name for name in names if self._peers[name].is_installed()]
        for name in installed:
            self._process(name).send_row("build", row)
        ours: dict[str, Array] = {}
        for name in names:
            if name not in installed:
                message = f"pip install {self._peers[name].pip}"
                found[name] = Measurement("not installed", message)
                continue
            with self._failures(name, found):
                process = self._processes[name]
                process.receive()
                found[name] = Measurement("measured")
                results = process.ask("results")
                ours = ours or results
                if message := difference(results, ours, row, self._peers[name].tolerance):
                    found[name] = Measurement("differs", message)
            ready(name, found[name].status)
        return found

    def _take_turns(self, running: list[str], found: dict[str, Measurement]) -> None:
        """Times all peers in interleaved rounds, each of which starts with a different peer."""
        for name in running:  # the first call of a peer may do more than the others
            with self._failures(name, found):
                self._processes[name].ask("seconds", WARM_SECONDS, 0.0)
        for number in range(self._rounds):
            first = number % len(running)
            for name in running[first:] + running[:first]:
                if found[name].status != "measured":
                    continue
                with self._failures(name, found):
                    request = "seconds", WARM_SECONDS, ROUND_SECONDS
                    found[name].values.append(self._processes[name].ask(*request))
                time.sleep(self._peers[name].rest_seconds)

    def _measure_memory(
        self, row: Row, names: Sequence[str], found: dict[str, Measurement]
    ) -> None:
        """Measures each peer in a new process."""
        processes = {}
        with contextlib.ExitStack() as stack:
            for name in names:
                processes[name] = process = Process(self._peers[name], self._threads)
                stack.callback(process.close)
                process.send_row("memory", row)
            for name, process in processes.items():
                with self._failures(name, found):
                    found[name].memory = process.receive()

    def _process(self, name: str) -> Process:
        if name not in self._processes or not self._processes[name].is_alive:
            self._processes[name] = Process(self._peers[name], self._threads)
        return self._processes[name]

    @contextlib.contextmanager
    def _failures(self, name: str, found: dict[str, Measurement]) -> Iterator[None]:
        try:
            yield
        except WorkerFailed as error:
            found[name] = Measurement("failed", str(error))


def difference(
    results: Mapping[str, Array],
    ours: Mapping[str, Array],
    row: Row,
    tolerance: float | None = None,
) -> str:
    """Compares the results of a peer with ours.

    Args:
      results: arrays by name. Arrays that the peer does not return are not compared.
      ours: our arrays by name.
      row: the row, whose dtype determines the tolerance.
      tolerance: that of a peer with coarser numbers than the row's.

    Returns:
      The first difference as text; empty if there is none.
    """
    if not results:
        return "it gave no results"
    tolerance = tolerance or (TOLERANCE if row.dtype == "float32" else TOLERANCE_16)
    for name, theirs in results.items():
        mine = ours[name]
        if theirs.shape != mine.shape:
            return f"{name} is {theirs.shape}, ours {mine.shape}"
        largest = np.abs(mine).max()
        error = np.abs(theirs - mine).max() / (largest or 1)
        if not error <= tolerance:  # nor is NaN
            return f"{name} by {error:.1e} of ours"
    return ""
