"""GRUWeights."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from tf_lstm_ops import _cells
from tf_lstm_ops._constructors import constructor
from tf_lstm_ops._refusal import require
from tf_lstm_ops.weights import checkpoint, cudnn, keras, safetensors, torch
from tf_lstm_ops.weights import onnx as onnx_format
from tf_lstm_ops.weights.canonical import Weights

if TYPE_CHECKING:
    import onnx
    from typing_extensions import Self


@dataclasses.dataclass(frozen=True, eq=False)
class GRUWeights(Weights):
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

    from_keras = constructor(keras.from_keras)
    to_keras = keras.to_keras
    from_cudnn = constructor(cudnn.from_cudnn)
    to_cudnn = cudnn.to_cudnn
    from_torch = constructor(torch.from_torch)
    to_torch = torch.to_torch
    from_safetensors = constructor(safetensors.from_safetensors)
    to_safetensors = safetensors.to_safetensors
    from_checkpoint = constructor(checkpoint.from_checkpoint)
    to_onnx = onnx_format.to_onnx

    @classmethod
    def from_onnx(
        cls,
        W: ArrayLike | os.PathLike[str] | onnx.ModelProto,
        R: ArrayLike | None = None,
        B: ArrayLike | None = None,
        *,
        linear_before_reset: int | None = None,
        node: str | None = None,
    ) -> Self:
        """From an ONNX file, or from the inputs of a node GRU; see LSTMWeights.from_onnx.

        Args:
          W: the path of an ONNX file, or an `onnx.ModelProto`; or [D, 3H, I], gates z, r, h.
          R: [D, 3H, H], gates z, r, h; None for a file.
          B: [D, 6H], or None for zero, and for a file.
          linear_before_reset: the node's attribute; None: that of the file's node, and 0 for
            arrays. 0 is Keras' reset_after=False.
          node: as of LSTMWeights.from_onnx.

        Returns:
          The weights of one layer, or of the layers of a stack.

        Raises:
          ImportError, OSError: as of LSTMWeights.from_onnx.
          ValueError: as of LSTMWeights.from_onnx; or linear_before_reset is not that of the file.
        """
        reset_after = bool(linear_before_reset)
        weights = onnx_format.read(cls, W, {"R": R, "B": B}, node, reset_after=reset_after)
        said = weights.reset_after
        require(
            linear_before_reset is None or reset_after == said,
            f"linear_before_reset must be {int(said)}, that of the node, but is "
            f"{linear_before_reset}",
        )
        return weights
