"""The shapes of oneDNN's benchmark, benchdnn, from tests/judges/benchdnn_shapes.txt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).parents[2] / "tests" / "judges" / "benchdnn_shapes.txt"
_DESCRIPTOR = re.compile(r"l(\d+)t(\d+)mb(\d+)sic(\d+)slc(\d+)dhc(\d+)dic(\d+)")


class Shape(NamedTuple):
    """A shape of one or more layers.

    Attributes:
      layers, time, batch: L, T and B.
      src_iter: the size of the initial h.
      src_layer: the size I of the input.
      hidden: the number H of units of the cell.
      dst_iter: the size of the output, which is not H with a projection.
    """

    layers: int
    time: int
    batch: int
    src_iter: int
    src_layer: int
    hidden: int
    dst_iter: int

    @property
    def has_one_state_size(self) -> bool:
        """Whether h has H units, before and after a step."""
        return self.src_iter == self.hidden == self.dst_iter

    @property
    def weights_per_gate(self) -> int:
        """The number of elements of the matrices of a gate, in all layers."""
        upper = (self.layers - 1) * 2 * self.hidden
        return self.hidden * (self.src_layer + self.hidden + upper)

    @property
    def work_per_gate(self) -> int:
        """The number of multiply-adds of a gate."""
        return self.time * self.batch * self.weights_per_gate


def read() -> dict[Shape, tuple[str, ...]]:
    """Reads the file.

    Returns:
      The shapes with the names of benchdnn's files that have them.
    """
    lines = FILE.read_text("utf-8").splitlines()
    split = [line.split() for line in lines if not line.startswith("#")]
    return {_shape(descriptor): tuple(names) for descriptor, *names in split}


def _shape(descriptor: str) -> Shape:
    found = _DESCRIPTOR.fullmatch(descriptor)
    if found is None:
        raise ValueError(f"{FILE} has no descriptor {descriptor}")
    return Shape(*map(int, found.groups()))
