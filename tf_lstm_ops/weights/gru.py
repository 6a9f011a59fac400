"""GRUWeights."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tf_lstm_ops import _cells
from tf_lstm_ops._arrays import Array
from tf_lstm_ops._refusal import require
from tf_lstm_ops.weights.canonical import CellWeights
from tf_lstm_ops.weights.checkpoint import CheckpointFormat
from tf_lstm_ops.weights.cudnn import CudnnFormat
from tf_lstm_ops.weights.keras import KerasFormat
from tf_lstm_ops.weights.onnx import GRUOnnxFormat
from tf_lstm_ops.weights.safetensors import SafetensorsFormat


@dataclasses.dataclass(frozen=True, eq=False)
class GRUWeights(KerasFormat, CudnnFormat, SafetensorsFormat, GRUOnnxFormat, CheckpointFormat):
    """The weights of a GRU of one or more layers. Gate order z, r, h.

    >>> import keras
    >>> from tf_lstm_ops.weights import GRUWeights
    >>> layer = keras.layers.GRU(4)
    >>> layer.build((None, None, 8))
    >>> state_dict = GRUWeights.from_keras(layer).to_torch()
    >>> state_dict["weight_ih_l0"].shape
    (12, 8)
    >>> GRUWeights.from_torch(state_dict).reset_after
    True

    Attributes:
      cells: one CellWeights for each direction of each layer, in the order
        layer * directions + direction.
      directions: 1 or 2; direction 1 runs backwards in time.
      reset_after: as of `keras.layers.GRU`: whether the reset gate multiplies the product of the
        previous state with the recurrent kernel, as in cuDNN and PyTorch, or the previous state.

    Raises:
      ValueError: the shapes or dtypes of the arrays are inconsistent, or there is a peephole or a
        projection.
    """

    reset_after: bool = True

    _CELL = _cells.GRU

    def __post_init__(self) -> None:
        self._require_no_options("a GRU")
        super().__post_init__()

    @classmethod
    def _options_from_keras(cls, layers: list[Any], arrays: list[list[Array]]) -> dict[str, Any]:
        kinds = {type(layer).__name__ for layer in layers if not hasattr(layer.cell, "reset_after")}
        require(
            not kinds, f"source must be a GRU but has layers of class {', '.join(sorted(kinds))}"
        )
        said = {layer.cell.reset_after for layer in layers}
        said |= {cell[2].ndim == 2 for cell in arrays if len(cell) > 2}
        require(len(said) < 2, "some of the layers have reset_after=False and some do not")
        return {"reset_after": said.pop() if said else True}

    @classmethod
    def _cell_from_keras(cls, arrays: list[Array]) -> CellWeights:
        kernel, recurrent_kernel, *rest = arrays
        require(len(rest) <= 1, f"{len(arrays)} arrays are more than those of a GRU layer")
        zero = np.zeros(kernel.shape[-1], kernel.dtype)
        bias = rest[0] if rest else zero
        require(
            bias.ndim == 1 or (bias.ndim == 2 and len(bias) == 2),
            f"bias must be (2, 3H), or (3H,) with reset_after=False, but is {bias.shape}",
        )
        biases = (bias, zero) if bias.ndim == 1 else bias
        return CellWeights(kernel, recurrent_kernel, *biases)

    def _cell_to_keras(self, cell: CellWeights, use_bias: bool) -> list[Array]:
        both = np.stack([cell.bias, cell.recurrent_bias])
        bias = [both if self.reset_after else both.sum(0)] if use_bias else []
        return [cell.kernel, cell.recurrent_kernel, *bias]

    def _require_reset_after(self, target: str) -> None:
        require(
            self.reset_after,
            f"{target} has the equation of reset_after=True, and these weights are of "
            "reset_after=False; use to_keras or to_onnx",
        )
