"""The canonical format. Every other format is converted to it and from it."""

from __future__ import annotations

import dataclasses
from typing import ClassVar, TypeVar

from tf_lstm_ops import _cells
from tf_lstm_ops._arrays import Array, require_shape
from tf_lstm_ops._refusal import require, within


@dataclasses.dataclass(frozen=True, eq=False)
class CellWeights:
    """One direction of one layer. It has G gates: 4 in an LSTM, 3 in a GRU, 1 in a plain RNN.

    The arrays have one dtype. They are not copied.

    >>> import numpy as np
    >>> from tf_lstm_ops.weights import CellWeights, LSTMWeights
    >>> bias = np.zeros(16)
    >>> cell = CellWeights(np.ones((8, 16)), np.ones((4, 16)), bias, bias)
    >>> weights = LSTMWeights((cell,))
    >>> weights.input_size, weights.units
    (8, 4)

    Attributes:
      kernel: [in, G*H], where in is I in the first layer and D*P in the others.
      recurrent_kernel: [P, G*H].
      bias: [G*H], added to the product of the input.
      recurrent_bias: [G*H], added to the product of h.
      peephole: [3, H], rows i, f, o, in an LSTM with peepholes; else None.
      projection: [H, P], in an LSTM with a projection; else None.
    """

    kernel: Array
    recurrent_kernel: Array
    bias: Array
    recurrent_bias: Array
    peephole: Array | None = None
    projection: Array | None = None

    def arrays(self) -> dict[str, Array]:
        """The arrays of the cell.

        Returns:
          The arrays that are not None, by the names of the attributes; not copied.
        """
        return {k: v for k, v in vars(self).items() if v is not None}

    def _check(self, gates: int, inputs: int, outputs: int, units: int) -> None:
        size_of_h = units if self.projection is None else outputs
        expected = {
            "kernel": (inputs, gates * units),
            "recurrent_kernel": (size_of_h, gates * units),
            "bias": (gates * units,),
            "recurrent_bias": (gates * units,),
            "peephole": (3, units),
            "projection": (units, outputs),
        }
        dtype = self.kernel.dtype
        for name, array in self.arrays().items():
            require_shape(name, array, *expected[name])
            require(array.dtype == dtype, f"{name} must be {dtype} but is {array.dtype}")
        if self.projection is not None:
            require(
                outputs < units, f"with a projection h must be smaller than {units}, not {outputs}"
            )


@dataclasses.dataclass(frozen=True, eq=False)
class Weights:
    """The base class of LSTMWeights, GRUWeights and RNNWeights.

    Attributes:
      cells: one CellWeights for each direction of each layer, in the order
        layer * directions + direction.
      directions: D, 1 or 2.

    Raises:
      ValueError: the shapes or dtypes of the arrays are inconsistent.
    """

    cells: tuple[CellWeights, ...]
    directions: int = 1

    _CELL: ClassVar[_cells.Cell]

    def __post_init__(self) -> None:
        if self._CELL is not _cells.LSTM:
            for name in ("peephole", "projection"):
                without = all(getattr(c, name) is None for c in self.cells)
                require(without, f"{self._CELL.words} has no {name}")
        count, directions = len(self.cells), self.directions
        require(directions in (1, 2), f"directions must be 1 or 2 but is {directions}")
        require(
            count and count % directions == 0,
            f"cells must hold a multiple of {directions} cells but holds {count}",
        )
        require(self.units > 0, "units must be positive but is 0")
        given = self.cells[0].arrays().keys()
        for k, cell in enumerate(self.cells):
            require(cell.arrays().keys() == given, f"cells[{k}] must have the arrays of cells[0]")
            inputs = self.input_size if k < directions else directions * self._output_size
            with within(f"cells[{k}]"):
                cell._check(len(self._CELL.gates), inputs, self._output_size, self.units)

    @property
    def input_size(self) -> int:
        """The input size I of the first layer."""
        return self.cells[0].kernel.shape[0]

    @property
    def units(self) -> int:
        """The number of units H, the size of c."""
        return self.cells[0].bias.size // len(self._CELL.gates)

    @property
    def projection_size(self) -> int | None:
        """The size P of h with a projection; None without, where h has H units."""
        return None if self.cells[0].projection is None else self._output_size

    @property
    def _output_size(self) -> int:
        """The size of h: P with a projection, else H."""
        return self.cells[0].recurrent_kernel.shape[0]

    @property
    def num_layers(self) -> int:
        """The number of layers; each has one or two directions."""
        return len(self.cells) // self.directions

    def _require_zero_biases(self, bias: bool) -> None:
        if not bias and any(c.bias.any() or c.recurrent_bias.any() for c in self.cells):
            raise ValueError("there are biases other than zero; make the target with biases")

    def _require_reset_after(self, target: str) -> None:
        require(
            getattr(self, "reset_after", True),
            f"{target} has the equation of reset_after=True, and these weights are of "
            "reset_after=False; use to_keras or to_onnx",
        )

    def _require_one_layer(self, target: str) -> None:
        d = self.directions
        require(
            self.num_layers == 1,
            f"{target} has one layer, not {self.num_layers}; convert each layer separately "
            f"with {type(self).__name__}(cells[k : k + {d}], {d})",
        )
        require(self.cells[0].projection is None, f"{target} has no projection; use to_cudnn")


# The class of weights that a function of a format makes.
Self = TypeVar("Self", bound=Weights)
