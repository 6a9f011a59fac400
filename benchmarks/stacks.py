"""Measures the latency of stacks of LSTM layers: one step, a window, a sliding window.

    python benchmarks/stacks.py [--seconds 2] [--models 2x128,2x100]

It prints Markdown tables with the 50th and 99th percentile and the longest call, in microseconds,
one thread. `benchmarks/stacks.md` has them.

* step: one step of a stream in C; the states stay. `benchmarks/latency_stream.c` measures it.
* window: a call of a session in Python with the last T steps, from zero states.
* sliding: the output of the last T steps from zero states at each new step, without computing the
  window again. A stream has a row for each window that has begun. It takes the new step in all
  rows. The oldest window ends: its row is the result, and is reset.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from one_row.page import number
from one_row.session_peers import build_program
from tf_lstm_ops.inference import Session, layers

TYPES = ("float32", "bfloat16", "int8")
WARM = 20  # calls that are not measured


@dataclasses.dataclass(frozen=True)
class Stack:
    """A stack with one output.

    Attributes:
      count, units: the LSTM layers.
      inputs: I.
      steps: T of a window; 0: steps only.
      source: whose shape it is.
    """

    count: int
    units: int
    inputs: int
    steps: int
    source: str

    @property
    def name(self) -> str:
        return f"{self.count}x{self.units}"

    def session(self, weights: str) -> Session:
        rng = np.random.default_rng(0)

        def normal(*shape: int) -> np.ndarray:
            return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

        sizes = [self.inputs] + [self.units] * self.count
        chain: list[layers.Layer] = [
            layers.LSTM(
                [normal(size, 4 * self.units), normal(self.units, 4 * self.units)],
                return_sequences=True,
            )
            for size in sizes[:-1]
        ]
        return Session([*chain, layers.Dense(normal(self.units, 1))], weights=weights)


STAC, VOLLO = "STAC-ML Markets (Inference)", "Vollo SDK"
STACKS = [
    Stack(2, 100, 100, 50, STAC),
    Stack(3, 200, 250, 100, STAC),
    Stack(4, 1000, 500, 100, STAC),
    *(Stack(n, units, units, 0, VOLLO) for n, units in ((2, 128), (3, 256), (3, 480), (6, 320))),
]


def percentiles(call: Callable[[], object], seconds: float) -> dict[str, float]:
    """The times of calls in nanoseconds: 50th and 99th percentile, and the longest one."""
    for _ in range(WARM):
        call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < WARM:
        start = time.perf_counter()
        call()
        times.append(1e9 * (time.perf_counter() - start))
    return dict(
        zip(("p50", "p99", "max"), np.percentile(times, (50, 99, 100)).tolist(), strict=True)
    )


def step(session: Session, seconds: float, folder: Path) -> dict[str, float]:
    """One step of a stream in C."""
    file = folder / "model.session"
    session.save(file)
    x, y = np.zeros((1, session.input_size), np.float32), np.empty((1, 1), np.float32)
    stream = session.stream()
    one = percentiles(lambda: stream(x, out=y), 0.1)["p50"]
    calls = max(1000, int(1e9 * seconds / one))
    line = [str(build_program(folder)), str(file), str(calls), "1"]
    return json.loads(subprocess.run(line, check=True, capture_output=True).stdout)


def window(session: Session, steps: int, seconds: float) -> dict[str, float]:
    """A call with T steps."""
    x = np.zeros((1, steps, session.input_size), np.float32)
    out = np.empty((1, steps, 1), np.float32)
    return percentiles(lambda: session(x, out=out), seconds)


class Sliding:
    """The outputs of sliding windows of T steps.

    Args:
      session: the model, which returns a sequence.
      steps: T.
    """

    def __init__(self, session: Session, steps: int) -> None:
        self.stream = session.stream(batch=steps)
        self.rows = np.empty((steps, session.input_size), np.float32)
        self.out = np.empty((steps, session.output_size), np.float32)
        self.oldest = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Takes a step [I]. Returns the output [O] of the window that ends with it."""
        self.rows[:] = x
        self.stream(self.rows, out=self.out)
        row = self.oldest
        self.stream.reset(rows=[row])
        self.oldest = (row + 1) % len(self.rows)
        return self.out[row]


def table(measured: dict[str, dict[str, dict[str, float]]]) -> str:
    """Rows of names, columns of types."""
    head = [f"{kind}, {number}" for kind in TYPES for number in ("p50", "p99", "longest")]
    lines = [["", *head], ["---", *["---:"] * len(head)]]
    for name, by_type in measured.items():
        cells = [by_type[kind][key] / 1e3 for kind in TYPES for key in ("p50", "p99", "max")]
        lines.append([name, *map(number, cells)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--models", default=",".join(each.name for each in STACKS))
    arguments = parser.parse_args()
    found: dict[str, dict[str, dict[str, dict[str, float]]]] = {"step": {}, "window": {}}
    found["sliding"] = {}
    with tempfile.TemporaryDirectory() as folder:
        for stack in (each for each in STACKS if each.name in arguments.models.split(",")):
            for kind in TYPES:
                session = stack.session(kind)
                by = step(session, arguments.seconds, Path(folder))
                found["step"].setdefault(stack.name, {})[kind] = by
                if not stack.steps:
                    continue
                x = np.zeros(stack.inputs, np.float32)
                sliding = Sliding(session, stack.steps)
                name = f"{stack.name}, T {stack.steps}"
                by = window(session, stack.steps, arguments.seconds)
                found["window"].setdefault(name, {})[kind] = by
                by = percentiles(lambda: sliding(x), arguments.seconds)  # noqa: B023
                found["sliding"].setdefault(name, {})[kind] = by
    for title, measured in found.items():
        print(f"\n{title}\n\n{table(measured)}")


if __name__ == "__main__":
    main()
