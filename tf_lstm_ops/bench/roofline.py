"""The least time that a row can take on this processor: its floor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tf_lstm_ops.bench.cases import GATES, Row, valid_steps

_FLOAT = 4  # bytes


@dataclass(frozen=True)
class Roofline:
    """What the processor can do at most on `threads` threads.

    Attributes:
      flops: operations a second, of float multiply-adds.
      bandwidth: bytes a second that come from so many bytes, read over and over.
    """

    threads: int
    flops: float
    bandwidth: dict[int, float]

    def best(self, other: Roofline) -> Roofline:
        """Of two measurements of the same sizes: what others did in between made one lower."""
        bandwidth = {n: max(v, other.bandwidth[n]) for n, v in self.bandwidth.items()}
        return Roofline(self.threads, max(self.flops, other.flops), bandwidth)


def measure(rows: Iterable[Row], threads: int) -> Roofline:
    """Takes a sixth of a second for the operations and for each size of weights."""
    from tf_lstm_ops import _library

    sizes = sorted({_weight_bytes(row) for row in rows if _has_floor(row)})
    return Roofline(
        threads,
        _library.measure_flops(threads),
        {size: _library.measure_read_bandwidth(size, threads) for size in sizes},
    )


def floor_seconds(row: Row, roofline: Roofline) -> float | None:
    """All products at the processor's rate of operations, but a step from one state to the next
    no faster than its weights can be read; None where no floor is defined.

    That step's weights are the recurrent matrix. What reads it, h R in each step and, in training,
    the gradient that goes back through it, cannot be done for many steps at once. The input's
    product, its gradients and that of the recurrent matrix can.
    """
    if not _has_floor(row):
        return None
    columns, passes = GATES[row.cell] * row.units, 1 if row.task != "training" else 2
    read = _weight_bytes(row) / roofline.bandwidth[_weight_bytes(row)]
    if row.task == "step":
        return max(2 * row.batch * (row.inputs + row.units) * columns / roofline.flops, read)
    rows_of_step = valid_steps(row).sum(axis=0)
    recurrent = 2 * rows_of_step * row.units * columns / roofline.flops
    steps = np.where(rows_of_step > 0, np.maximum(recurrent, read), 0).sum()
    width = row.directions * row.units
    inputs = row.inputs + (row.layers - 1) * width
    of_inputs = row.directions * 2 * rows_of_step.sum() * inputs * columns / roofline.flops
    cells = row.layers * row.directions
    seconds = of_inputs + cells * passes * steps
    if row.task == "training":
        seconds += 2 * of_inputs + cells * recurrent.sum()
    return float(seconds)


def _has_floor(row: Row) -> bool:
    """Not in 16 bits, whose operations have another rate, and where a call does more than this."""
    tasks = ("inference", "training", "step")
    return row.task in tasks and row.dtype == "float32" and row.measure == "time"


def _weight_bytes(row: Row) -> int:
    """Of the matrix that every step reads."""
    rows = row.units + (row.inputs if row.task == "step" else 0)
    return rows * GATES[row.cell] * row.units * _FLOAT
