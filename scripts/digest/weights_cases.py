"""Conversions of tf_lstm_ops.weights to every format and back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from cases import SMALL, Case, Draw, Results, described

from tf_lstm_ops.weights import CellWeights, GRUWeights, LSTMWeights

CLASSES: dict[str, Any] = {"lstm": LSTMWeights, "gru": GRUWeights}
HIDDEN = 6  # the size of h with a projection


class Model(NamedTuple):
    cell: str
    layers: int = 1
    directions: int = 1
    extra: str = ""  # "peephole" or "projection"

    def case(self) -> Case:
        return Case("weights", self.cell, described(self), self.run, ("float32", "float64"))

    def run(self, draw: Draw) -> Results:
        cells = [self._cell_weights(k // self.directions, draw) for k in range(self._cells())]
        weights = CLASSES[self.cell](tuple(cells), self.directions)
        return {
            f"{form} {k}": _converted(weights, form, to_options, from_options)
            for k, (form, to_options, from_options) in enumerate(self._forms())
        }

    def _cells(self) -> int:
        return self.layers * self.directions

    def _cell_weights(self, layer: int, draw: Draw) -> CellWeights:
        units, has_projection = SMALL.units, self.extra == "projection"
        hidden = HIDDEN if has_projection else units
        inputs = SMALL.inputs if layer == 0 else self.directions * hidden
        columns = units * (4 if self.cell == "lstm" else 3)
        arrays: dict[str, Any] = {
            "kernel": draw(inputs, columns).numpy(),
            "recurrent_kernel": draw(hidden, columns).numpy(),
            "bias": draw(columns).numpy(),
            "recurrent_bias": draw(columns).numpy(),
        }
        if self.extra == "peephole":
            arrays["peephole"] = draw(3, units).numpy()
            arrays["peephole"][2] = 0  # MPSGraph's output gate has another kind of peephole
        if has_projection:
            arrays["projection"] = draw(units, hidden).numpy()
        return CellWeights(**arrays)

    def _forms(self) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Names of forms, with the options for writing and for reading."""
        projection_size = HIDDEN if self.extra == "projection" else 0
        counts = {
            "num_layers": self.layers,
            "directions": self.directions,
            "projection_size": projection_size,
        }
        yield "cudnn", {}, {**counts, "input_size": SMALL.inputs, "units": SMALL.units}
        yield "keras", {}, {}
        yield "torch", {}, {}
        yield "onnx", {}, {"linear_before_reset": 1} if self.cell == "gru" else {}
        for last in (False, True) if self.cell == "lstm" else ():
            yield "mpsgraph", {"forget_gate_last": last}, {"forget_gate_last": last}
        for gates, bias in (("ICFO", 1.0), ("IFCO", 0.0)) if self.cell == "lstm" else ():
            attributes = {"gate_order": gates, "forget_bias": bias}
            yield "block_cell", attributes, attributes


def _converted(
    weights: Any, form: str, to_options: dict[str, Any], from_options: dict[str, Any]
) -> Any:
    """What is written, and what is read from that; None if the form cannot hold the model."""
    try:
        written = getattr(weights, f"to_{form}")(**to_options)
    except ValueError:
        return None
    arguments = written if hasattr(written, "_fields") else [written]
    given = [argument for argument in arguments if argument is not None]
    read = getattr(weights, f"from_{form}")(*given, **from_options)
    return written, [cell.arrays() for cell in read.cells]


def cases() -> Iterator[Case]:
    for layers, directions in itertools.product((1, 2), (1, 2)):
        yield Model("gru", layers, directions).case()
        for extra in ("", "peephole", "projection"):
            yield Model("lstm", layers, directions, extra).case()
