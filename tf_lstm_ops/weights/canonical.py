"""The canonical format. Every other format is converted to it and from it."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from tf_lstm_ops.weights.arrays import Array, require, require_shape


@dataclasses.dataclass(frozen=True, eq=False)
class CellWeights:
    """One direction of one layer. It has G gates: 4 in an LSTM, 3 in a GRU.

    The arrays have one dtype. They are not copied.

    Attributes:
      kernel: [in, G*H], where in is I in the first layer and D*P in the others.
      recurrent_kernel: [P, G*H].
      bias: [G*H], of the input side.
      recurrent_bias: [G*H], of the recurrent side.
      peephole: [3, H], rows i, f, o; LSTM only, None without.
      projection: [H, P]; LSTM only, None without.
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

    def _check(self, gates: int, inputs: int, hidden: int, cell: int) -> None:
        hidden_or_cell = cell if self.projection is None else hidden
        expected = {
            "kernel": (inputs, gates * cell),
            "recurrent_kernel": (hidden_or_cell, gates * cell),
            "bias": (gates * cell,),
            "recurrent_bias": (gates * cell,),
            "peephole": (3, cell),
            "projection": (cell, hidden),
        }
        dtype = self.kernel.dtype
        for name, array in self.arrays().items():
            require_shape(name, array, *expected[name])
            require(array.dtype == dtype, f"{name} must be {dtype} but is {array.dtype}")
        if self.projection is not None:
            require(hidden < cell, f"with a projection h must be smaller than {cell}, not {hidden}")


@dataclasses.dataclass(frozen=True, eq=False)
class Weights:
    """The base class of LSTMWeights and GRUWeights. The classes of formats add their methods.

    Attributes:
      layers: one CellWeights for each direction of each layer, in the order
        layer * directions + direction.
      directions: D, 1 or 2.

    Raises:
      ValueError: the shapes or dtypes of the arrays are inconsistent.
    """

    layers: tuple[CellWeights, ...]
    directions: int = 1

    _GATES: ClassVar[str]  # the gate order here and in Keras
    _OUTPUT_MAJOR_GATES: ClassVar[str]  # the gate order in cuDNN and PyTorch
    _ONNX_GATES: ClassVar[str]
    _MODE: ClassVar[str]  # cuDNN's rnn_mode

    def __post_init__(self) -> None:
        cells, directions = len(self.layers), self.directions
        require(directions in (1, 2), f"directions must be 1 or 2 but is {directions}")
        require(
            cells and cells % directions == 0,
            f"layers must hold a multiple of {directions} cells but holds {cells}",
        )
        require(self.cell_size > 0, "the cell size must be positive but is 0")
        given = self.layers[0].arrays().keys()
        for k, cell in enumerate(self.layers):
            require(cell.arrays().keys() == given, f"layers[{k}] must have the arrays of layers[0]")
            inputs = self.input_size if k < directions else directions * self.hidden_size
            try:
                cell._check(len(self._GATES), inputs, self.hidden_size, self.cell_size)
            except ValueError as error:
                raise ValueError(f"layers[{k}]: {error}") from None

    @property
    def input_size(self) -> int:
        """The input size I of the first layer."""
        return self.layers[0].kernel.shape[0]

    @property
    def cell_size(self) -> int:
        """The cell size H."""
        return self.layers[0].bias.size // len(self._GATES)

    @property
    def hidden_size(self) -> int:
        """The hidden size P: the size of the projection if there is one, else H."""
        return self.layers[0].recurrent_kernel.shape[0]

    @property
    def layer_count(self) -> int:
        """The number of layers; each has one or two directions."""
        return len(self.layers) // self.directions

    def _require_zero_biases(self, bias: bool) -> None:
        if not bias and any(c.bias.any() or c.recurrent_bias.any() for c in self.layers):
            raise ValueError("there are biases other than zero; make the target with biases")

    def _require_reset_after(self, target: str) -> None:
        """Checks that a target without GRUs of reset_after=False can hold the weights."""

    def _require_one_layer(self, target: str) -> None:
        d = self.directions
        require(
            self.layer_count == 1,
            f"{target} has one layer, not {self.layer_count}; convert each layer separately "
            f"with {type(self).__name__}(layers[k : k + {d}], {d})",
        )
        require(self.layers[0].projection is None, f"{target} has no projection; use to_cudnn")
