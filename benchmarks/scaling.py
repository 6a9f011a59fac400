"""Measures how the time of an LSTM layer grows with its sizes; prints Markdown tables.

    python benchmarks/scaling.py [--output benchmarks] [--sweeps batch,steps,units] [--odd]

Three sweeps change one size each: the batch size N, the number of steps T, the number of units H.
The call is `tf_lstm_ops.keras.LSTM` in a `tf.function`: inference, and a training step with the
gradients of all weights and of x. It is timed as `benchmarks/peers` times it. A time is the
shortest one of all rounds.

Each size is compared with a reference size: the largest measured one that is at most half of it.
The growth factor is the growth of the time divided by the growth of the operations between the
two. If the size is s times the reference size, the factor is raised to the power 1 / log2(s),
which gives the factor of a doubling. At a factor of 1 the time grows as the operations do. A
factor below 1 means that fixed costs are a part of the time at the smaller size. The limit is 1.1.
A factor above it is measured again, and marked if it is still above it.

The operations are those of the matrix products, with two for a multiply-add and I inputs:

* inference: 8 N T H (I + H), the products of x and h with the weights of four gates;
* training: three times as many. The backward pass multiplies the gradients of the pre-activations
  once by the weights, for the gradients of x and h, and once by x and h, for those of the weights.

With --output DIR it writes DIR/scaling.md and DIR/scaling.png. It takes a few minutes. Run it on an
idle machine.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from peers import capacity
from peers.cases import Row
from peers.frameworks import PEERS
from peers.machine import describe
from peers.roofline import Roofline, floor_seconds
from peers.runner import Bench

LIMIT = 1.1  # of a growth factor
REPEATS = 2  # how often factors above the limit are measured again
TASKS = ("inference", "training")
COLOURS = {"inference": "#0072B2", "training": "#D55E00"}


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A size that grows while the others stay.

    Attributes:
      field: the size's name in a Row.
      symbol: its symbol.
      sizes: its values, ascending.
      odd: further values, which are not powers of two.
      fixed: the other sizes by their name in a Row.
    """

    field: str
    symbol: str
    sizes: tuple[int, ...]
    fixed: Mapping[str, int]
    odd: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        """The head of its table."""
        symbols = {"batch": "N", "time": "T", "inputs": "I", "units": "H"}
        fixed = " ".join(f"{symbols[name]}{size}" for name, size in self.fixed.items())
        return f"{self.symbol} from {self.sizes[0]} to {self.sizes[-1]}, {fixed}"

    def rows(self, task: str, odd: bool) -> dict[int, Row]:
        """The rows to measure.

        Args:
          task: "inference" or "training".
          odd: whether to include the further values.

        Returns:
          The rows by the size that grows, ascending.
        """
        found = {}
        for size in sorted(self.sizes + self.odd * odd):
            sizes: dict[str, Any] = {**self.fixed, self.field: size}
            name = f"{task} {self.symbol}{size}"
            found[size] = Row(name, task, task, peers=("ours",), **sizes)
        return found


def doublings(first: int, last: int) -> tuple[int, ...]:
    """first, 2 first, 4 first and so on, up to `last`."""
    return tuple(first * 2**k for k in range(int(math.log2(last / first)) + 1))


SWEEPS = {
    "batch": Sweep("batch", "N", doublings(1, 4096), {"time": 25, "inputs": 64, "units": 128}),
    "steps": Sweep("time", "T", doublings(10, 10240), {"batch": 16, "inputs": 64, "units": 64}),
    "units": Sweep(
        "units",
        "H",
        doublings(8, 1024),
        {"batch": 32, "time": 25, "inputs": 64},
        odd=(12, 25, 50, 100, 200, 300, 500, 1000),
    ),
}


def operations(row: Row) -> float:
    """The operations of a row: its time by the roofline model with one operation a second."""
    unlimited: dict[int, float] = collections.defaultdict(lambda: math.inf)
    found = floor_seconds(row, Roofline(1, 1.0, unlimited))
    assert found
    return found


def previous(size: int, sizes: Sequence[int]) -> int | None:
    """The size from which the growth to `size` is counted, or None for the first ones."""
    return max((s for s in sizes if 2 * s <= size), default=None)


def growth_factors(rows: Mapping[int, Row], seconds: Mapping[int, float]) -> dict[int, float]:
    """The growth factors for a doubling.

    Args:
      rows: by size.
      seconds: the time of each row, by size.

    Returns:
      The factors by size, without the first sizes.
    """
    found = {}
    for size in rows:
        if before := previous(size, list(rows)):
            time = seconds[size] / seconds[before]
            factor = time / (operations(rows[size]) / operations(rows[before]))
            found[size] = factor ** (1 / math.log2(size / before))
    return found


@dataclasses.dataclass
class Curve:
    """The measurements of a task in a sweep.

    Attributes:
      rows: by size.
      seconds: the shortest time of each row, by size.
    """

    rows: dict[int, Row]
    seconds: dict[int, float] = dataclasses.field(default_factory=dict)

    @property
    def factors(self) -> dict[int, float]:
        """The growth factors by size."""
        return growth_factors(self.rows, self.seconds)

    @property
    def above(self) -> list[int]:
        """The sizes whose factor is above the limit."""
        return [size for size, factor in self.factors.items() if factor > LIMIT]

    def measure(self, seconds_of: Callable[[Row], float]) -> None:
        """Measures all rows, and those again whose factor is above the limit.

        Args:
          seconds_of: measures a row.
        """
        for size, row in self.rows.items():
            self.seconds[size] = seconds_of(row)
        for _ in range(REPEATS):
            for size in self._in_doubt():
                self.seconds[size] = min(self.seconds[size], seconds_of(self.rows[size]))

    def _in_doubt(self) -> list[int]:
        pairs = {s: previous(s, list(self.rows)) for s in self.above}
        return sorted({*pairs, *(s for s in pairs.values() if s)})


def table(sweep: Sweep, curves: Mapping[str, Curve]) -> Iterator[str]:
    """The lines of a sweep's table.

    Args:
      sweep: the sweep.
      curves: by task, with the same sizes.

    Yields:
      Lines of Markdown.
    """
    yield f"## {sweep.title}\n"
    heads = [f"{task}{head}" for task in curves for head in (", ms", ", GFLOP/s", ", growth")]
    yield f"| {' | '.join([sweep.symbol, *heads])} |"
    yield "|---:" * (len(heads) + 1) + "|"
    for size in next(iter(curves.values())).rows:
        cells = [str(size)]
        for curve in curves.values():
            seconds, factor = curve.seconds[size], curve.factors.get(size)
            cells += [f"{seconds * 1e3:.4g}", f"{operations(curve.rows[size]) / seconds / 1e9:.1f}"]
            cells.append("" if factor is None else mark(factor))
        yield f"| {' | '.join(cells)} |"


def mark(factor: float) -> str:
    """The table's cell of a growth factor. Those above the limit are bold."""
    return f"**{factor:.2f}, above {LIMIT}**" if factor > LIMIT else f"{factor:.2f}"


def document(machine: Mapping[str, Any], found: Mapping[str, Mapping[str, Curve]]) -> str:
    """The content of scaling.md.

    Args:
      machine: the properties of the machine by name.
      found: the curves by the names of the sweep and of the task.

    Returns:
      Markdown.
    """
    above = [
        f"{task} {SWEEPS[name].symbol}{size}"
        for name, curves in found.items()
        for task, curve in curves.items()
        for size in curve.above
    ]
    lines = ["# Growth of the time with the sizes\n"]
    lines += [f"* {name}: {value}" for name, value in machine.items()]
    lines += [
        f"* factors above {LIMIT}: {', '.join(above) or 'none'}",
        "\nGrowth is the growth of the time divided by the growth of the operations, for a",
        "doubling. [scaling.py](scaling.py) defines both, and wrote this page.",
    ]
    for name, curves in found.items():
        lines += ["", *table(SWEEPS[name], curves)]
    return "\n".join(lines) + "\n"


def save_plot(path: Path, found: Mapping[str, Mapping[str, Curve]]) -> None:
    """Writes a PNG: for each sweep the times, and below them the growth factors.

    Args:
      path: the file to write.
      found: the curves by the names of the sweep and of the task.
    """
    figure = Figure(figsize=(4.2 * len(found), 6.5), layout="constrained")
    FigureCanvasAgg(figure)  # needs no display, whatever backend the user has set
    axes = figure.subplots(2, len(found), sharex="col", height_ratios=(2, 1), squeeze=False)
    for (name, curves), (times, factors) in zip(found.items(), axes.T, strict=True):
        _draw(SWEEPS[name], curves, times, factors)
    axes[0, 0].set_ylabel("time, ms")
    axes[1, 0].set_ylabel("growth factor")
    axes[0, 0].legend(frameon=False)
    figure.savefig(path, dpi=130)


def _draw(sweep: Sweep, curves: Mapping[str, Curve], times: Axes, factors: Axes) -> None:
    for task, curve in curves.items():
        style: dict[str, Any] = {
            "color": COLOURS[task],
            "marker": "o",
            "markersize": 4,
            "linewidth": 1,
        }
        sizes = list(curve.rows)
        times.plot(sizes, [curve.seconds[s] * 1e3 for s in sizes], label=task, **style)
        # The time at the last size's rate of operations.
        last = curve.seconds[sizes[-1]] / operations(curve.rows[sizes[-1]])
        line = [last * operations(curve.rows[s]) * 1e3 for s in sizes]
        label = "as the operations" if task == TASKS[-1] else None
        times.plot(sizes, line, color="#999999", linestyle=":", linewidth=1, label=label)
        found = curve.factors
        factors.plot(list(found), list(found.values()), **style)
    factors.axhline(LIMIT, color="black", linewidth=1)
    factors.set_ylim(bottom=0)
    times.set_yscale("log")
    times.set_title(sweep.title, fontsize=9)
    factors.set_xlabel(sweep.symbol)
    for axes in (times, factors):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)


def measure(
    names: Sequence[str], threads: int, rounds: int, odd: bool
) -> dict[str, dict[str, Curve]]:
    """Measures sweeps and prints the progress.

    Args:
      names: of the sweeps.
      threads: the number of threads.
      rounds: the number of rounds of a row.
      odd: whether to include sizes that are not powers of two.

    Returns:
      The curves by the names of the sweep and of the task.
    """
    found: dict[str, dict[str, Curve]] = {}
    with Bench({"ours": PEERS["ours"]}, threads, rounds) as bench:

        def seconds_of(row: Row) -> float:
            measurement = bench.run(row, lambda *_: None)["ours"]
            if measurement.status != "measured":
                raise SystemExit(f"{row.name} {measurement.status}: {measurement.message}")
            print(f"{row.name}: {min(measurement.values) * 1e3:.4g} ms", flush=True)
            return min(measurement.values)

        for name in names:
            found[name] = {task: Curve(SWEEPS[name].rows(task, odd)) for task in TASKS}
            for curve in found[name].values():
                curve.measure(seconds_of)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", metavar="DIR", type=Path, help="write scaling.md, scaling.png")
    parser.add_argument(
        "--sweeps", metavar="NAMES", default=",".join(SWEEPS), help="default: %(default)s"
    )
    parser.add_argument(
        "--odd", action="store_true", help="also numbers of units that are not powers of two"
    )
    parser.add_argument("--threads", type=int, default=2, help="default: 2")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of a row (default: 9)")
    parser.add_argument(capacity.OPTION, action="store_true", help=capacity.HELP)
    arguments = parser.parse_args()
    names = arguments.sweeps.split(",")
    if unknown := sorted(set(names) - SWEEPS.keys()):
        parser.error(f"--sweeps must be of {', '.join(SWEEPS)}. Received: {', '.join(unknown)}")
    try:
        machine = describe(capacity.check(arguments.threads, arguments.any_capacity))
    except capacity.TooLow as error:
        parser.exit(1, f"{error}\n")
    found = measure(names, arguments.threads, arguments.rounds, arguments.odd)
    text = document(machine, found)
    print(f"\n{text}")
    if arguments.output:
        arguments.output.mkdir(parents=True, exist_ok=True)
        (arguments.output / "scaling.md").write_text(text)
        save_plot(arguments.output / "scaling.png", found)


if __name__ == "__main__":
    main()
