"""GRUWeights."""

from __future__ import annotations

import numpy as np

from tf_lstm_ops.weights.arrays import Array, require
from tf_lstm_ops.weights.canonical import CellWeights
from tf_lstm_ops.weights.cudnn import CudnnForm
from tf_lstm_ops.weights.keras import KerasForm
from tf_lstm_ops.weights.onnx import GRUOnnxForm
from tf_lstm_ops.weights.torch import TorchForm


class GRUWeights(KerasForm, CudnnForm, TorchForm, GRUOnnxForm):
    """The weights of GRU layers, one upon another, with reset_after=True. Gate order z, r, h.

    The attributes and errors are those of LSTMWeights.
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
