"""LSTMWeights."""

from __future__ import annotations

import numpy as np

from tf_lstm_ops import _cells
from tf_lstm_ops._arrays import Array
from tf_lstm_ops._refusal import require
from tf_lstm_ops.weights.block_cell import BlockCellFormat
from tf_lstm_ops.weights.canonical import CellWeights
from tf_lstm_ops.weights.checkpoint import CheckpointFormat
from tf_lstm_ops.weights.cudnn import CudnnFormat
from tf_lstm_ops.weights.keras import KerasFormat
from tf_lstm_ops.weights.mpsgraph import MPSGraphFormat
from tf_lstm_ops.weights.onnx import LSTMOnnxFormat
from tf_lstm_ops.weights.safetensors import SafetensorsFormat


class LSTMWeights(
    KerasFormat,
    CudnnFormat,
    SafetensorsFormat,
    LSTMOnnxFormat,
    MPSGraphFormat,
    BlockCellFormat,
    CheckpointFormat,
):
    """The weights of an LSTM of one or more layers. Gate order i, f, c, o.

    >>> import keras
    >>> from tf_lstm_ops.weights import LSTMWeights
    >>> layer = keras.layers.Bidirectional(keras.layers.LSTM(4))
    >>> layer.build((None, None, 8))
    >>> weights = LSTMWeights.from_keras(layer)
    >>> sorted(weights.to_torch())[:2]
    ['bias_hh_l0', 'bias_hh_l0_reverse']
    >>> params = weights.to_cudnn()
    >>> params.shape
    (448,)
    >>> back = LSTMWeights.from_cudnn(params, input_size=8, units=4, directions=2)
    >>> back.num_layers, back.directions, len(back.cells)
    (1, 2, 2)

    Attributes:
      cells: one CellWeights for each direction of each layer, in the order
        layer * directions + direction.
      directions: 1 or 2; direction 1 runs backwards in time.

    Raises:
      ValueError: the shapes or dtypes of the arrays are inconsistent.
    """

    _CELL = _cells.LSTM

    @classmethod
    def _cell_from_keras(cls, arrays: list[Array]) -> CellWeights:
        kernel, recurrent_kernel, *rest = arrays
        zero = np.zeros(kernel.shape[-1], kernel.dtype)
        # Keras converts its bias to cuDNN's recurrent bias, too.
        bias = rest.pop(0) if rest and rest[0].ndim == 1 else zero
        # [P, 4H] with P < H if there is a projection, which is then the last array.
        projected = rest and recurrent_kernel.shape[0] * 4 < recurrent_kernel.shape[-1]
        projection = rest.pop() if projected else None
        peephole = rest.pop(0) if rest else None
        require(not rest, f"{len(arrays)} arrays are more than those of an LSTM layer")
        return CellWeights(kernel, recurrent_kernel, zero, bias, peephole, projection)

    def _cell_to_keras(self, cell: CellWeights, use_bias: bool) -> list[Array]:
        bias = [cell.bias + cell.recurrent_bias] if use_bias else []
        optional = [a for a in (cell.peephole, cell.projection) if a is not None]
        return [cell.kernel, cell.recurrent_kernel, *bias, *optional]
