"""Weights of LSTM, GRU and plain RNN models, converted from one format to another.

`LSTMWeights`, `GRUWeights` and `RNNWeights` are the canonical format. Their class methods
``from_*`` read other formats, their methods ``to_*`` write them. All arrays are NumPy arrays of the
given dtype. They are copies: no conversion shares memory with its source. Conversions raise
ValueError for weights that the target format cannot express.

Notation: I input size, H units, P size of h (H, or the size of the
projection), D directions, G gates.
"""

from __future__ import annotations

from typing import Any

from tf_lstm_ops import _cells
from tf_lstm_ops.weights.block_cell import BlockCell
from tf_lstm_ops.weights.canonical import CellWeights
from tf_lstm_ops.weights.gru import GRUWeights
from tf_lstm_ops.weights.lstm import LSTMWeights
from tf_lstm_ops.weights.mpsgraph import MPSGraph
from tf_lstm_ops.weights.onnx import Onnx
from tf_lstm_ops.weights.rnn import RNNWeights

__all__ = [
    "BlockCell",
    "CellWeights",
    "GRUWeights",
    "LSTMWeights",
    "MPSGraph",
    "Onnx",
    "RNNWeights",
]


def class_of(cell: _cells.Cell) -> Any:
    """The class of the weights of a cell.

    Args:
      cell: the cell.

    Returns:
      LSTMWeights, GRUWeights or RNNWeights.
    """
    return globals()[cell.weights]
