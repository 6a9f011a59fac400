"""GRUWeights."""

from __future__ import annotations

import numpy as np

from tf_lstm_ops.weights.arrays import Array, require
from tf_lstm_ops.weights.canonical import CellWeights
from tf_lstm_ops.weights.cudnn import CudnnFormat
from tf_lstm_ops.weights.keras import KerasFormat
from tf_lstm_ops.weights.onnx import GRUOnnxFormat
from tf_lstm_ops.weights.torch import TorchFormat


class GRUWeights(KerasFormat, CudnnFormat, TorchFormat, GRUOnnxFormat):
    """The weights of a multi-layer GRU with reset_after=True. Gate order z, r, h.

    Attributes:
      layers: one CellWeights for each direction of each layer, in the order
        layer * directions + direction.
      directions: 1 or 2; direction 1 runs backwards in time.

    Raises:
      ValueError: the shapes or dtypes of the arrays are inconsistent, or there is a peephole or a
        projection.
    """

    _GATES = "zrh"
    _OUTPUT_MAJOR_GATES = "rzh"
    _ONNX_GATES = "zrh"
    _MODE = "gru"

    def __post_init__(self) -> None:
        for name in ("peephole", "projection"):
            require(all(getattr(c, name) is None for c in self.layers), f"a GRU has no {name}")
        super().__post_init__()

    @classmethod
    def _cell_from_keras(cls, arrays: list[Array]) -> CellWeights:
        kernel, recurrent_kernel, *rest = arrays
        require(len(rest) <= 1, f"{len(arrays)} arrays are more than those of a GRU layer")
        bias = rest[0] if rest else np.zeros((2, kernel.shape[-1]), kernel.dtype)
        require(
            bias.ndim == 2 and len(bias) == 2,
            f"bias must be (2, 3H) but is {bias.shape}: a layer with reset_after=False has another "
            "equation; make it with reset_after=True",
        )
        return CellWeights(kernel, recurrent_kernel, *bias)

    @staticmethod
    def _cell_to_keras(cell: CellWeights, use_bias: bool) -> list[Array]:
        bias = [np.stack([cell.bias, cell.recurrent_bias])] if use_bias else []
        return [cell.kernel, cell.recurrent_kernel, *bias]
