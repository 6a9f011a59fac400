"""The layout of cuDNN's `params`: which part of the flat buffer is what.

Pseudo-layer p = layer * directions + direction. First come all matrices, pseudo-layer by
pseudo-layer: the input matrices of the gates, the recurrent ones, the projection. Then come all
biases: those of the input side, those of the recurrent side. Matrices multiply from the left.

Gate order: lstm i, f, c, o; gru r, u, n.
"""

from __future__ import annotations

import dataclasses
import math

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


@dataclasses.dataclass(frozen=True)
class Region:
    """A consecutive part of the buffer, row-major.

    Attributes:
      pseudo_layer: layer * directions + direction.
      kind: "input" [G, H, in], "recurrent" [G, H, P], "projection" [P, H], "input_bias" [G, H] or
        "recurrent_bias" [G, H], with G gates, cell size H and hidden size P.
      shape: its shape.
    """

    pseudo_layer: int
    kind: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def matrix_shape(self) -> tuple[int, ...]:
        """The shape with gates and rows as one axis."""
        if self.kind == "projection":
            return self.shape
        return (self.shape[0] * self.shape[1], *self.shape[2:])


@dataclasses.dataclass(frozen=True)
class Model:
    """What determines the layout; the arguments of the CudnnRNN ops, as they take them.

    Raises:
      ValueError: an argument that is out of range or does not go with the others.
    """

    mode: str
    input_size: int
    cell_size: int
    layers: int = 1
    directions: int = 1
    num_proj: int = 0
    input_mode: str = "linear_input"

    def __post_init__(self) -> None:
        if self.mode not in GATES:
            raise ValueError(f"rnn_mode must be one of {', '.join(GATES)} but is {self.mode}")
        if self.input_mode not in ("linear_input", "skip_input", "auto_select"):
            raise ValueError(
                "input_mode must be linear_input, skip_input or auto_select but is "
                f"{self.input_mode}"
            )
        for name in ("input_size", "cell_size", "layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive but is {getattr(self, name)}")
        if self.directions not in (1, 2):
            raise ValueError(f"directions must be 1 or 2 but is {self.directions}")
        if not 0 <= self.num_proj <= self.cell_size:
            raise ValueError(
                f"num_proj must be between 0 and {self.cell_size} but is {self.num_proj}"
            )
        if self.projected and self.mode != "lstm":
            raise ValueError(f"num_proj must be 0 for {self.mode} but is {self.num_proj}")
        if self.skip_input and self.input_size != self.cell_size:
            raise ValueError(
                f"skip_input needs input_size == cell_size: {self.input_size} vs. {self.cell_size}"
            )

    @property
    def gates(self) -> int:
        return GATES[self.mode]

    @property
    def projected(self) -> bool:
        return 0 < self.num_proj < self.cell_size

    @property
    def hidden_size(self) -> int:
        """The size of h: that of the projection, if there is one."""
        return self.num_proj if self.projected else self.cell_size

    @property
    def skip_input(self) -> bool:
        """Whether the first layer adds its input to every gate, without a matrix."""
        return self.input_mode == "skip_input" or (
            self.input_mode == "auto_select" and self.input_size == self.cell_size
        )

    @property
    def pseudo_layers(self) -> int:
        return self.layers * self.directions

    def layer_input_size(self, pseudo_layer: int) -> int:
        """The number of features that this pseudo-layer sees."""
        first = pseudo_layer < self.directions
        return self.input_size if first else self.directions * self.hidden_size

    def regions(self) -> list[Region]:
        """All regions in the order of the buffer; absent ones are left out."""
        gates = (self.gates, self.cell_size)
        matrices, biases = [], []
        for p in range(self.pseudo_layers):
            if not (self.skip_input and p < self.directions):
                matrices.append(Region(p, "input", (*gates, self.layer_input_size(p))))
            matrices.append(Region(p, "recurrent", (*gates, self.hidden_size)))
            if self.projected:
                matrices.append(Region(p, "projection", (self.hidden_size, self.cell_size)))
            biases += [Region(p, "input_bias", gates), Region(p, "recurrent_bias", gates)]
        return matrices + biases

    def size(self) -> int:
        """The number of elements of the buffer."""
        return sum(region.size for region in self.regions())
