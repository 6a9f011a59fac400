"""Recurrent layers in files of trained weights: of TensorFlow 1, Keras and PyTorch.

The import needs NumPy only. `from_checkpoint` of `tf_lstm_ops.weights` and the command
``tf-lstm-ops checkpoint`` use it.
"""

from __future__ import annotations

import dataclasses
import os

from tf_lstm_ops._refusal import require
from tf_lstm_ops.checkpoints import files, notes, stacks
from tf_lstm_ops.checkpoints.cells import Cell
from tf_lstm_ops.checkpoints.families import cells_of
from tf_lstm_ops.files.contents import Contents

__all__ = ["Candidate", "candidates"]


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Weights that a file has.

    Attributes:
      name: the name for the argument `layer` of `from_checkpoint`.
      kind: "lstm" or "gru".
      family: what wrote them, in words.
      layers: the number of layers.
      directions: 1 or 2.
      input_size: I; None where the shapes are not those of such a layer.
      units: H; None likewise.
      projection_size: P; None without a projection.
      forget_bias: what the family's program adds to the forget gate at run time.
      dtype: the name of the dtype.
      note: what a reader must know, in words.
      problem: why the weights cannot be converted; empty if they can.
      cells: the cells of which it consists.
    """

    name: str
    kind: str
    family: str
    layers: int
    directions: int
    input_size: int | None
    units: int | None
    projection_size: int | None
    forget_bias: float
    dtype: str
    note: str
    problem: str
    cells: tuple[Cell, ...] = dataclasses.field(repr=False)


def candidates(path: str | os.PathLike[str]) -> list[Candidate]:
    """Lists the weights of LSTM and GRU layers that a file has.

    Args:
      path: as of `LSTMWeights.from_checkpoint`.

    Returns:
      The candidates, in the file's order. Only names, shapes and dtypes of the arrays are used.

    Raises:
      ImportError: a package that reads this kind of file is not installed.
      OSError: there is no such file, or it cannot be read.
      ValueError: the file is of no known kind, or it is damaged.
    """
    contents = files.read(path)
    return _candidates(stacks.grouped(cells_of(contents)), contents)


def chosen(path: str | os.PathLike[str], kinds: tuple[str, ...], layer: str | None) -> Candidate:
    """The candidate that a caller means.

    Args:
      path: as of `candidates`.
      kinds: the kinds that count, of "lstm" and "gru".
      layer: its name, the first parts of it, or the name of a layer of a stack; None: the only one.

    Returns:
      The candidate.

    Raises:
      ImportError, OSError, ValueError: as of `candidates`; or there is no such candidate, or there
        are several.
    """
    require(layer is None or isinstance(layer, str), f"layer must be a text but is {layer!r}")
    contents = files.read(path)
    cells = cells_of(contents)
    every = _candidates(stacks.grouped(cells), contents)
    found = [candidate for candidate in every if candidate.kind in kinds]
    words = " or ".join(kind.upper() for kind in kinds)
    if not found:
        other = f"; it has a {every[0].kind.upper()}" if every else ""
        raise ValueError(f"{path} ({contents.kind}) has no weights of a known {words}{other}")
    if layer is None:
        require(len(found) == 1, f"{path} has several; pass layer=, one of {_listed(found)}")
        return found[0]
    parts = _candidates([stacks.Group(cell.name, (cell,), 1) for cell in cells], contents)
    inside = [part for part in parts if part.kind in kinds and part.name == layer]
    named = [candidate for candidate in found if candidate.name == layer]
    under = [candidate for candidate in found if is_named(candidate.name, layer)]
    fitting = named or inside or under
    what = "several of this name" if fitting else f"no {layer!r}"
    require(len(fitting) == 1, f"{path} has {what}; pass layer=, one of {_listed(found)}")
    return fitting[0]


def is_named(name: str, layer: str) -> bool:
    """Whether `layer` means a candidate.

    Args:
      name: that of the candidate.
      layer: the whole name, or its first parts.

    Returns:
      True if it does.
    """
    return name == layer or name.startswith((f"{layer}/", f"{layer}."))


def _candidates(groups: list[stacks.Group], contents: Contents) -> list[Candidate]:
    layers = notes.layers_of(contents.config)
    return [_candidate(each, notes.of(each, contents.version, layers)) for each in groups]


def _candidate(group: stacks.Group, note: str) -> Candidate:
    first = group.cells[0]
    sizes = first.sizes
    alone = sizes if len(group.cells) == 1 else None
    return Candidate(
        name=group.name,
        kind=first.kind,
        family=first.family,
        layers=alone.layers if alone else group.layers,
        directions=alone.directions if alone else group.directions,
        input_size=sizes.inputs if sizes else None,
        units=sizes.units if sizes else None,
        projection_size=sizes.projection if sizes else None,
        forget_bias=first.forget_bias,
        dtype=next(iter(first.roles.values())).dtype,
        note=note,
        problem=first.problem,
        cells=group.cells,
    )


def _listed(found: list[Candidate]) -> str:
    names = [repr(candidate.name) for candidate in found[:20]]
    more = f" and {len(found) - 20} more" if len(found) > 20 else ""
    return ", ".join(names) + more
