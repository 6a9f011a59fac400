"""Layers and directions that belong together, as their names say."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tf_lstm_ops.checkpoints.cells import Cell

_LAYER = re.compile(r"(?<![^/])[Cc]ell_?(\d+)(?![^/])")
_DIRECTIONS = {"fw": 0, "forward": 0, "bw": 1, "backward": 1}
_DIRECTION = re.compile(r"(?<![^/])(fw|bw|forward|backward)(?=[_/]|$)")


class Group(NamedTuple):
    """Cells that are one weights object.

    Attributes:
      name: the part of the cells' names that they share.
      cells: in the order layer * directions + direction.
      directions: D.
    """

    name: str
    cells: tuple[Cell, ...]
    directions: int

    @property
    def layers(self) -> int:
        """The number of layers."""
        return len(self.cells) // self.directions


class _Place(NamedTuple):
    key: tuple[str, ...]  # of the cells with which it may belong together
    layer: int
    direction: int


def grouped(cells: Sequence[Cell]) -> list[Group]:
    """Joins layers of a stack and the two directions of a layer.

    Args:
      cells: the cells of a file.

    Returns:
      Groups of which the sizes fit together. A cell alone is a group, too.
    """
    buckets: dict[tuple[str, ...], dict[tuple[int, int], Cell]] = {}
    loose = collections.Counter(_place(cell, loose=True) for cell in cells)
    twice = {place.key for place, count in loose.items() if count > 1}
    alone = []
    for cell in cells:
        place = _place(cell, loose=True)
        if place.key in twice:
            place = _place(cell, loose=False)
        if cell.sizes is None or cell.problem:
            alone.append(_single(cell))
        else:
            buckets.setdefault(place.key, {})[place.layer, place.direction] = cell
    groups = [*(group for bucket in buckets.values() for group in _groups(bucket)), *alone]
    order = {id(cell): k for k, cell in enumerate(cells)}
    groups.sort(key=lambda group: order[id(group.cells[0])])
    return _named(groups)


def _place(cell: Cell, *, loose: bool) -> _Place:
    """Where a cell belongs. Keras may number the directions' layers otherwise: loose."""
    layer, direction, name = 0, 0, cell.name
    if cell.family != "ELMo" and (match := _LAYER.search(name)):
        layer, name = int(match[1]), f"{name[: match.start()]}*{name[match.end() :]}"
    if match := _DIRECTION.search(name):
        direction = _DIRECTIONS[match[1]]
        name = f"{name[: match.start()]}*{name[match.end() :]}"
        name = re.sub(r"(\*[^/]*?)_\d+(?=/|$)", r"\1", name) if loose else name
    return _Place((name, cell.kind, cell.family), layer, direction)


def _groups(bucket: dict[tuple[int, int], Cell]) -> Iterator[Group]:
    """The groups of cells whose names differ in the layer and the direction only."""
    layers = sorted({layer for layer, _ in bucket})
    directions = sorted({direction for _, direction in bucket})
    places = [(layer, direction) for layer in layers for direction in directions]
    if layers == list(range(len(layers))) and all(place in bucket for place in places):
        cells = tuple(bucket[place] for place in places)
        if len(cells) > 1 and _fit(cells, len(directions)):
            yield Group(_shared(cells), cells, len(directions))
            return
    if len(layers) > 1 and len(directions) > 1:  # each direction may be a stack of its own
        for wanted in directions:
            yield from _groups(
                {place: cell for place, cell in bucket.items() if place[1] == wanted}
            )
        return
    yield from map(_single, bucket.values())


def _fit(cells: tuple[Cell, ...], directions: int) -> bool:
    """Whether each layer takes the outputs of the one below, and all have the same arrays."""
    sizes = [cell.sizes for cell in cells if cell.sizes is not None]
    inputs, outputs = sizes[0].inputs, directions * sizes[0].outputs
    return all(
        (size.units, size.projection) == (sizes[0].units, sizes[0].projection)
        and size.inputs == (inputs if k < directions else outputs)
        and cell.roles.keys() == cells[0].roles.keys()
        and size.layers == size.directions == 1
        for k, (size, cell) in enumerate(zip(sizes, cells, strict=True))
    )


def _single(cell: Cell) -> Group:
    return Group(cell.name, (cell,), 1)


def _shared(cells: tuple[Cell, ...]) -> str:
    """The first parts of the names that all cells have."""
    split = [cell.name.split("/") for cell in cells]
    parts = []
    for column in zip(*split, strict=False):
        if len(set(column)) > 1:
            break
        parts.append(column[0])
    return "/".join(parts) or cells[0].name


def _named(groups: list[Group]) -> list[Group]:
    """Groups with names that differ: the first cell's name where the shared part is another's."""
    names = [group.name for group in groups]
    return [
        group._replace(name=group.cells[0].name) if names.count(group.name) > 1 else group
        for group in groups
    ]
