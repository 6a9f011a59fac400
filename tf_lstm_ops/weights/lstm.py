"""LSTMWeights."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from tf_lstm_ops import _cells
from tf_lstm_ops._constructors import constructor
from tf_lstm_ops.weights import (
    block_cell,
    checkpoint,
    cudnn,
    keras,
    mpsgraph,
    safetensors,
    torch,
)
from tf_lstm_ops.weights import onnx as onnx_format
from tf_lstm_ops.weights.canonical import Weights

if TYPE_CHECKING:
    import onnx
    from typing_extensions import Self


class LSTMWeights(Weights):
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

    from_keras = constructor(keras.from_keras)
    to_keras = keras.to_keras
    from_cudnn = constructor(cudnn.from_cudnn)
    to_cudnn = cudnn.to_cudnn
    from_torch = constructor(torch.from_torch)
    to_torch = torch.to_torch
    from_safetensors = constructor(safetensors.from_safetensors)
    to_safetensors = safetensors.to_safetensors
    from_mpsgraph = constructor(mpsgraph.from_mpsgraph)
    to_mpsgraph = mpsgraph.to_mpsgraph
    from_block_cell = constructor(block_cell.from_block_cell)
    to_block_cell = block_cell.to_block_cell
    from_checkpoint = constructor(checkpoint.from_checkpoint)
    to_onnx = onnx_format.to_onnx

    @classmethod
    def from_onnx(
        cls,
        W: ArrayLike | os.PathLike[str] | onnx.ModelProto,
        R: ArrayLike | None = None,
        B: ArrayLike | None = None,
        P: ArrayLike | None = None,
        *,
        node: str | None = None,
    ) -> Self:
        """From an ONNX file, or from the inputs of a node LSTM, of any `direction`.

        `from_onnx(path)` reads a node of the file, also in a sub-graph such as a branch of If. A
        node is one layer. If all such nodes of a file are a stack, they are the layers: each one
        reads the output of the one before, with no other than Squeeze, Transpose, Reshape, Identity
        and Dropout between them, and has the same size, direction and options. Nodes
        DynamicQuantizeLSTM of ONNX Runtime are dequantized.

        `from_onnx(W, R, B, P)` takes the arrays of a node.

        The weights do not depend on whether `direction` is "forward" or "reverse", and on `layout`.
        The target layer has this setting, such as Keras' go_backwards. `activations` other than the
        default and `clip` are not part of the weights; for a file a UserWarning names them.

        Args:
          W: the path of an ONNX file, or an `onnx.ModelProto`; or [D, 4H, I], gates i, o, f, c.
          R: [D, 4H, H], gates i, o, f, c; None for a file.
          B: [D, 8H], or None for zero, and for a file.
          P: [D, 3H], peepholes i, o, f; None without peepholes, and for a file.
          node: of a file with several nodes, the name of the one to read, or of an output of it.
            The error that comes without it lists the names. None for arrays.

        Returns:
          The weights of one layer, or of the layers of a stack.

        Raises:
          ImportError: the package onnx is not installed, and W is a file.
          OSError: the file cannot be read, or one beside it that has its tensors.
          ValueError: the shapes are inconsistent; or the file is damaged; it has no such node, or
            several, and `node` names none; the weights are computed at run time; or input_forget
            is 1.
        """
        return onnx_format.read(cls, W, {"R": R, "B": B, "P": P}, node)
