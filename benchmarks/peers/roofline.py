"""The roofline of this processor, and the shortest time of a row by the roofline model."""

from __future__ import annotations

import runpy
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from peers.cases import GATES, Row, valid_steps

_FLOAT = 4  # bytes
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Roofline:
    """The highest rates of the processor.

    Attributes:
      threads: the number of threads.
      flops: float operations per second; a multiply-add is two.
      bandwidth: bytes per second of repeated reads of a buffer, by the size of the buffer in bytes.
    """

    threads: int
    flops: float
    bandwidth: dict[int, float]

    def best(self, other: Roofline) -> Roofline:
        """Joins two measurements. Other load on the machine can only make a rate lower.

        Args:
          other: a measurement with as many threads.

        Returns:
          The higher one of the two values of each rate, with the sizes of both.
        """
        sizes = sorted({*self.bandwidth, *other.bandwidth})
        bandwidth = {n: max(r.bandwidth.get(n, 0) for r in (self, other)) for n in sizes}
        return Roofline(self.threads, max(self.flops, other.flops), bandwidth)


def measure(rows: Iterable[Row], threads: int) -> Roofline:
    """Measures the processor. It takes 1/6 s for the operations and 1/6 s for each size of weights.

    The program that measures is compiled before, for the instruction set that the engine uses.

    Args:
      rows: the rows whose time by the model is needed.
      threads: the number of threads.

    Returns:
      The roofline, with the bandwidth of the weights of each row.

    Raises:
      subprocess.CalledProcessError: the compiler or the program failed.
    """
    from tf_lstm_ops import _library

    sizes = sorted({_weight_bytes(row) for row in rows if _has_floor(row)})
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "roofline")
        command = _compile_command(_library.cpu_info()["instruction_set"], program)
        subprocess.run(command, cwd=_ROOT, check=True)
        command = [program, str(threads), *map(str, sizes)]
        found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    flops, *bandwidth = map(float, found.split())
    return Roofline(threads, flops, dict(zip(sizes, bandwidth, strict=True)))


def _compile_command(instruction_set: str, program: str) -> list[str]:
    """Compiles `benchmarks/roofline` for one of the engine's instruction sets."""
    native = runpy.run_path(str(_ROOT / "build_defs" / "native.py"))
    flags, name = native["FLAGS"], instruction_set.replace("-", "_")
    sets = flags["SIMD_X86_64"] | flags["SIMD_OTHER"] | flags["SIMD_ARM64_TOO"]
    options = [*flags["COPTS"], *flags["SIMD_COPTS"], *sets[name], flags["SIMD_DEFINE"] + name]
    sources = [
        *("benchmarks/roofline/main.cc", "benchmarks/roofline/roofline.cc"),
        *("cc/backends/cpu/memory/aligned_buffer.cc", "cc/backends/cpu/memory/huge_pages.cc"),
    ]
    return [*native["compiler"](), *options, *sources, "-o", program]


def floor_seconds(row: Row, roofline: Roofline) -> float | None:
    """The shortest time of a call of a row by the roofline model.

    All matrix products run at the processor's rate of operations, but a recurrent step takes at
    least the time to read its weights. The recurrent products h R, the projection and, in training,
    the gradients of h cannot be computed for many steps at once. The input's product and the
    gradients of the input and of the weights can.

    Args:
      row: the row.
      roofline: the measured rates.

    Returns:
      The time in seconds; None if the model does not cover the row.
    """
    if not _has_floor(row):
        return None
    columns, passes = GATES[row.cell] * row.units, 1 if row.task != "training" else 2
    read = _weight_bytes(row) / roofline.bandwidth[_weight_bytes(row)]
    if row.task == "step":
        return max(2 * row.batch * (row.inputs + row.units) * columns / roofline.flops, read)
    rows_per_step = valid_steps(row).sum(axis=0)
    recurrent = 2 * rows_per_step * _step_weights(row) / roofline.flops
    steps = np.where(rows_per_step > 0, np.maximum(recurrent, read), 0).sum()
    inputs = row.inputs + (row.layers - 1) * row.width
    input_products = row.directions * 2 * rows_per_step.sum() * inputs * columns / roofline.flops
    cells = row.layers * row.directions
    seconds = input_products + cells * passes * steps
    if row.task == "training":
        seconds += 2 * input_products + cells * recurrent.sum()
    return float(seconds)


def _has_floor(row: Row) -> bool:
    """Whether the model covers a row: 16-bit operations have another rate, other tasks do more."""
    tasks = ("inference", "training", "step")
    return row.task in tasks and row.dtype == "float32" and row.measure == "time"


def _weight_bytes(row: Row) -> int:
    """The size of the matrices that every step reads."""
    inputs = row.inputs * GATES[row.cell] * row.units if row.task == "step" else 0
    return (inputs + _step_weights(row)) * _FLOAT


def _step_weights(row: Row) -> int:
    """The number of weights that multiply h: the recurrent matrix and the projection."""
    return row.hidden * GATES[row.cell] * row.units + row.units * row.projection
