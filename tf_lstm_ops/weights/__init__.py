"""Weights of LSTM and GRU models, carried from one form to another.

`LSTMWeights` and `GRUWeights` are the canonical form; class methods ``from_*`` read other forms,
methods ``to_*`` write them. All are NumPy arrays of the given dtype, copied. What one form can say
and another cannot raises ValueError; docs/weights.md has the rules and examples.

Notation: I input size, H cell size, P hidden size (that of h: H, or that of the projection), D
directions.
"""

from tf_lstm_ops.weights.block_cell import BlockCell
from tf_lstm_ops.weights.canonical import CellWeights
from tf_lstm_ops.weights.gru import GRUWeights
from tf_lstm_ops.weights.lstm import LSTMWeights
from tf_lstm_ops.weights.mpsgraph import MPSGraph
from tf_lstm_ops.weights.onnx import Onnx

__all__ = ["BlockCell", "CellWeights", "GRUWeights", "LSTMWeights", "MPSGraph", "Onnx"]
