"""The models that are measured. H units, I input size, T steps of a call."""

from __future__ import annotations

import dataclasses

UNITS = (1, 8, 16, 32, 64, 128, 256, 512)
SQUARE = (64, 128, 256, 512)  # input = units
SEQUENCE_UNITS = (18, 32, 64, 128, 256, 512, 1024, 2048)
SEQUENCE_STEPS = 100
CELLS = ("lstm", "gru")


@dataclasses.dataclass(frozen=True)
class Layer:
    """A layer.

    Attributes:
      kind: "lstm", "gru" or "dense", which has the activation sigmoid.
      units: H, or features of a dense layer's output.
      projection: the size P to which an LSTM projects h; 0 without a projection.
      peephole: whether the gates of an LSTM read its cell state.
    """

    kind: str
    units: int
    projection: int = 0
    peephole: bool = False

    @property
    def size(self) -> int:
        """Features of the output."""
        return self.projection or self.units


@dataclasses.dataclass(frozen=True)
class Case:
    """A model and a call of it.

    Attributes:
      name: unique.
      group: its table, a key of `CASES`.
      inputs: I.
      layers: in the order in which data go through them.
      time: T. With 1, states are kept from call to call; else a call begins with zeros.
    """

    name: str
    group: str
    inputs: int
    layers: tuple[Layer, ...]
    time: int = 1

    @property
    def keeps_states(self) -> bool:
        return self.time == 1

    @property
    def state_sizes(self) -> list[int]:
        """The sizes of the states: h of each layer, then of an LSTM c."""
        sizes = []
        for layer in self.layers:
            if layer.kind != "dense":
                sizes += [layer.size, layer.units][: 2 if layer.kind == "lstm" else 1]
        return sizes


def _single(group: str, cell: str, inputs: int, units: int, time: int = 1) -> Case:
    name = f"{cell} I{inputs} H{units}" + (f" T{time}" if time > 1 else "")
    return Case(name, group, inputs, (Layer(cell, units),), time)


def _stack(layers: int, units: int) -> Case:
    return Case(f"{layers} × {units}", "models", units, (Layer("lstm", units),) * layers)


CASES: dict[str, list[Case]] = {
    "units": [_single("units", cell, 1, units) for cell in CELLS for units in UNITS],
    "square": [_single("square", cell, units, units) for cell in CELLS for units in SQUARE],
    "models": [
        *(_stack(layers, units) for layers, units in ((2, 128), (3, 256), (3, 480), (6, 320))),
        Case("Silero-like", "models", 128, (Layer("lstm", 128),)),
        Case(
            "DTLN-like",
            "models",
            257,
            (Layer("lstm", 128), Layer("lstm", 128), Layer("dense", 257)),
        ),
        Case("kws-like", "models", 40, (Layer("lstm", 500, projection=200, peephole=True),)),
        Case("GTCRN-like", "models", 16, (Layer("gru", 8),)),
    ],
    "sequences": [
        _single("sequences", cell, units, units, SEQUENCE_STEPS)
        for cell in CELLS
        for units in SEQUENCE_UNITS
    ],
}
