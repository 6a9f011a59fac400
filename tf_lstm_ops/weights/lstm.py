"""LSTMWeights."""

from __future__ import annotations

import numpy as np

from tf_lstm_ops.weights.arrays import Array, require
from tf_lstm_ops.weights.block_cell import BlockCellForm
from tf_lstm_ops.weights.canonical import CellWeights
from tf_lstm_ops.weights.cudnn import CudnnForm
from tf_lstm_ops.weights.keras import KerasForm
from tf_lstm_ops.weights.mpsgraph import MPSGraphForm
from tf_lstm_ops.weights.onnx import LSTMOnnxForm
from tf_lstm_ops.weights.torch import TorchForm


class LSTMWeights(KerasForm, CudnnForm, TorchForm, LSTMOnnxForm, MPSGraphForm, BlockCellForm):
    """The weights of LSTM layers, one upon another. Gate order i, f, c, o.

    Attributes:
      layers: one CellWeights for each direction of each layer, in the order
        layer * directions + direction.
      directions: 1 or 2; direction 1 runs backwards in time.

    Raises:
      ValueError: the shapes or dtypes of the arrays do not go together.
    """

    _GATES = "ifco"
    _OUTPUT_MAJOR_GATES = "ifco"
    _ONNX_GATES = "iofc"
    _MODE = "lstm"

    @classmethod
    def _cell_from_keras(cls, arrays: list[Array]) -> CellWeights:
        kernel, recurrent_kernel, *rest = arrays
        zero = np.zeros(kernel.shape[-1], kernel.dtype)
        # As in Keras' own way to cuDNN: its bias is that of the recurrent side.
        bias = rest.pop(0) if rest and rest[0].ndim == 1 else zero
        peephole = rest.pop(0) if rest else None
        require(not rest, f"{len(arrays)} arrays are more than those of an LSTM layer")
        return CellWeights(kernel, recurrent_kernel, zero, bias, peephole)

    @staticmethod
    def _cell_to_keras(cell: CellWeights, use_bias: bool) -> list[Array]:
        bias = [cell.bias + cell.recurrent_bias] if use_bias else []
        peephole = [] if cell.peephole is None else [cell.peephole]
        return [cell.kernel, cell.recurrent_kernel, *bias, *peephole]
