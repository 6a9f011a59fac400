"""The layout of cuDNN's `params`: the regions of the flat buffer and their weights.

cuDNN calls one direction of one layer a pseudo-layer, p = layer * directions + direction. The
buffer begins with all matrices, pseudo-layer by pseudo-layer: the input matrices of the gates, the
recurrent ones, the projection. It ends with all biases: those of the input side, those of the
recurrent side. Matrices are output-major. The gate order is i, f, c, o for lstm and r, u, n for
gru.

This module is for code that cannot call a kernel: the composites and the conversions of NumPy
arrays.
"""
# The kernels use cc/core/params_layout.h.

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from tf_lstm_ops import _cells

GATES = {mode: len(cell.gates) for mode, cell in _cells.BY_MODE.items()}


@dataclasses.dataclass(frozen=True)
class Region:
    """A contiguous region of the buffer, row-major.

    Attributes:
      pseudo_layer: layer * directions + direction.
      kind: "input" [G, H, in], "recurrent" [G, H, P], "projection" [1, P, H], "input_bias" [G, H]
        or "recurrent_bias" [G, H], with G gates, H units and P numbers in h. Where the first
        layer skips its input, its `in` is 0.
      shape: its shape.
    """

    pseudo_layer: int
    kind: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def matrix_shape(self) -> tuple[int, ...]:
        """The shape with gates and rows as one axis."""
        return (self.shape[0] * self.shape[1], *self.shape[2:])


@dataclasses.dataclass(frozen=True)
class Model:
    """The arguments of the CudnnRNN ops that determine the layout.

    Attributes:
      mode: the ops' rnn_mode, a key of GATES.
      input_size: I.
      units: H, the ops' num_units.
      num_layers: L.
      directions: D, 1 or 2.
      projection_size: the ops' num_proj. There is no projection if it is 0 or H.
      input_mode: as the ops take it.

    Raises:
      ValueError: an argument is out of range, or the arguments are inconsistent.
    """

    mode: str
    input_size: int
    units: int
    num_layers: int = 1
    directions: int = 1
    projection_size: int = 0
    input_mode: str = "linear_input"

    def __post_init__(self) -> None:
        if self.mode not in GATES:
            raise ValueError(f"rnn_mode must be one of {', '.join(GATES)} but is {self.mode}")
        if self.input_mode not in ("linear_input", "skip_input", "auto_select"):
            raise ValueError(
                "input_mode must be linear_input, skip_input or auto_select but is "
                f"{self.input_mode}"
            )
        for name in ("input_size", "units", "num_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive but is {getattr(self, name)}")
        if self.directions not in (1, 2):
            raise ValueError(f"directions must be 1 or 2 but is {self.directions}")
        if not 0 <= self.projection_size <= self.units:
            raise ValueError(
                f"projection_size (num_proj) must be between 0 and {self.units} but is "
                f"{self.projection_size}"
            )
        if self.projected and self.mode != "lstm":
            raise ValueError(
                f"projection_size (num_proj) must be 0 for {self.mode} but is "
                f"{self.projection_size}"
            )
        if self.skip_input and self.input_size != self.units:
            raise ValueError(
                f"skip_input needs input_size == units: {self.input_size} vs. {self.units}"
            )

    @property
    def gates(self) -> int:
        """The number of gates G."""
        return GATES[self.mode]

    @property
    def projected(self) -> bool:
        """Whether h is projected."""
        return 0 < self.projection_size < self.units

    @property
    def output_size(self) -> int:
        """The size of h: that of the projection if there is one, else H."""
        return self.projection_size if self.projected else self.units

    @property
    def skip_input(self) -> bool:
        """Whether the first layer adds its input to every gate, without a matrix."""
        return self.input_mode == "skip_input" or (
            self.input_mode == "auto_select" and self.input_size == self.units
        )

    @property
    def pseudo_layers(self) -> int:
        """The number of pseudo-layers."""
        return self.num_layers * self.directions

    def regions(self) -> list[Region]:
        """The regions of the buffer.

        Returns:
          All regions, in the order of the buffer. Their sizes add up to the size of the buffer.
        """
        return [*self._matrices(), *self._biases()]

    def _matrices(self) -> Iterator[Region]:
        for p in range(self.pseudo_layers):
            inputs = self.directions * self.output_size
            if p < self.directions:
                inputs = 0 if self.skip_input else self.input_size
            yield Region(p, "input", (self.gates, self.units, inputs))
            yield Region(p, "recurrent", (self.gates, self.units, self.output_size))
            if self.projected:
                yield Region(p, "projection", (1, self.output_size, self.units))

    def _biases(self) -> Iterator[Region]:
        for p in range(self.pseudo_layers):
            yield Region(p, "input_bias", (self.gates, self.units))
            yield Region(p, "recurrent_bias", (self.gates, self.units))

    def size(self) -> int:
        """The size of the buffer.

        Returns:
          The number of elements.
        """
        if self.num_layers > 2:  # all layers but the first have one size
            one, two = (dataclasses.replace(self, num_layers=n).size() for n in (1, 2))
            return one + (self.num_layers - 1) * (two - one)
        return sum(region.size for region in self.regions())
