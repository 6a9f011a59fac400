"""RNNWeights."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from tf_lstm_ops import _activations, _cells
from tf_lstm_ops._refusal import require
from tf_lstm_ops.weights import cudnn, keras, safetensors, torch
from tf_lstm_ops.weights import onnx as onnx_format
from tf_lstm_ops.weights.canonical import Weights

if TYPE_CHECKING:
    import onnx
    from typing_extensions import Self


@dataclasses.dataclass(frozen=True, eq=False)
class RNNWeights(Weights):
    """The weights of a plain RNN of one or more layers: Keras' SimpleRNN, PyTorch's RNN.

    Most sources do not say which activation function belongs to the weights: the methods that read
    them take it.

    >>> import keras
    >>> from tf_lstm_ops.weights import RNNWeights
    >>> layer = keras.layers.SimpleRNN(4, activation="relu")
    >>> layer.build((None, None, 8))
    >>> weights = RNNWeights.from_keras(layer)
    >>> weights.activation
    'relu'
    >>> weights.to_torch()["weight_ih_l0"].shape
    (4, 8)

    Attributes:
      cells: one CellWeights for each direction of each layer, in the order
        layer * directions + direction.
      directions: 1 or 2; direction 1 runs backwards in time.
      activation: "tanh" or "relu", of all layers.

    Raises:
      ValueError: the shapes or dtypes of the arrays are inconsistent, there is a peephole or a
        projection, or activation is another one.
    """

    activation: str = "tanh"

    _CELL = _cells.SIMPLE_RNN

    to_keras = keras.to_keras
    to_cudnn = cudnn.to_cudnn
    to_torch = torch.to_torch
    to_safetensors = safetensors.to_safetensors
    to_onnx = onnx_format.to_onnx

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.activation in _activations.OF_PLAIN_RNN,
            f"activation must be 'tanh' or 'relu' but is {self.activation!r}",
        )

    @classmethod
    def from_keras(cls, source: Any, *, activation: str | None = None) -> Self:
        """From a Keras layer.

        Args:
          source: a SimpleRNN, a Bidirectional around one, or what their `get_weights()` returns
            (arrays, tensors or variables); or a list of these for the layers of a multi-layer RNN,
            the first layer first.
          activation: "tanh" or "relu"; None: that of the layers, and "tanh" for arrays.

        Returns:
          The weights of all layers.

        Raises:
          ValueError: the weights have other shapes than this kind of layer, the sizes or the
            activations of two layers are inconsistent, the activation is neither tanh nor relu or
            not the given one, a layer is not built yet, or one has a replaced method or cell.
        """
        weights = keras.from_keras(cls, source)
        return weights._with(activation, bool(keras.recurrent_layers(source)))

    @classmethod
    def from_torch(
        cls, state_dict: Any, *, prefix: str = "", activation: str | None = None
    ) -> Self:
        """From a `torch.nn.RNN` or `torch.nn.RNNCell`.

        Args:
          state_dict: the module, or its state dict: arrays or tensors by PyTorch's names. If the
            module has no biases (bias=False), they become zero. A cell is one layer of one
            direction.
          prefix: the beginning of the module's names in the state dict of a larger model, such as
            "encoder.". Other names are not read.
          activation: "tanh" or "relu", PyTorch's nonlinearity. None: that of the module, and "tanh"
            for a state dict, which does not say it.

        Returns:
          The weights of all layers.

        Raises:
          ValueError: a name is missing or unknown, a value is no array, the weights are of another
            kind of module, their shapes are inconsistent, or the activation is not the module's.
        """
        weights = torch.from_torch(cls, state_dict, prefix=prefix)
        said = getattr(state_dict, "nonlinearity", None)
        if isinstance(said, str):
            weights = dataclasses.replace(weights, activation=said)
        return weights._with(activation, isinstance(said, str))

    @classmethod
    def from_safetensors(
        cls, path: str | os.PathLike[str], *, prefix: str = "", activation: str | None = None
    ) -> Self:
        """From a .safetensors file with the state dict of a module that `from_torch` takes.

        Args:
          path: the file, of `to_safetensors`, or of a PyTorch model.
          prefix: the beginning of the module's names in the file, such as "encoder.". Other names
            are not read.
          activation: "tanh" or "relu", which the file does not say; None: "tanh".

        Returns:
          The weights of all layers.

        Raises:
          ImportError: the package safetensors is not installed.
          OSError: the file cannot be opened.
          ValueError: the file is no .safetensors file; or an error of `from_torch`.
        """
        return safetensors.from_safetensors(cls, path, prefix=prefix)._with(activation)

    @classmethod
    def from_cudnn(cls, params: ArrayLike, *, activation: str | None = None, **sizes: Any) -> Self:
        """From the `params` of the CudnnRNN ops with rnn_mode "rnn_tanh" or "rnn_relu".

        Args:
          params: [params_size], in cuDNN's layout, which is that of both modes.
          activation: "tanh" or "relu"; None: "tanh".
          **sizes: input_size, units and other arguments of `LSTMWeights.from_cudnn`; a plain RNN
            has no projection.

        Returns:
          The weights of all layers.

        Raises:
          ValueError: params does not have the size of such a model, or an argument is out of range.
        """
        return cudnn.from_cudnn(cls, params, **sizes)._with(activation)

    @classmethod
    def from_onnx(
        cls,
        W: ArrayLike | os.PathLike[str] | onnx.ModelProto,
        R: ArrayLike | None = None,
        B: ArrayLike | None = None,
        *,
        activation: str | None = None,
        node: str | None = None,
    ) -> Self:
        """From an ONNX file, or from the inputs of a node RNN; see LSTMWeights.from_onnx.

        Args:
          W: the path of an ONNX file, or an `onnx.ModelProto`; or [D, H, I].
          R: [D, H, H]; None for a file.
          B: [D, 2H], or None for zero, and for a file.
          activation: "tanh" or "relu", by the node's attribute activations; None: that of the
            file's node, and "tanh" for arrays, the default of the attribute.
          node: as of LSTMWeights.from_onnx.

        Returns:
          The weights of one layer, or of the layers of a stack.

        Raises:
          ImportError, OSError: as of LSTMWeights.from_onnx.
          ValueError: as of LSTMWeights.from_onnx; or activation is another one, or not that of the
            file.
        """
        of_arrays = "tanh" if activation is None else activation
        weights = onnx_format.read(cls, W, {"R": R, "B": B}, node, activation=of_arrays)
        return weights._with(activation, is_known=True)

    def _with(self, activation: str | None, is_known: bool = False) -> Self:
        """The weights with a given activation, which must be that of the source if it is known."""
        if activation is None or activation == self.activation:
            return self
        require(
            not is_known,
            f"activation must be that of the source, {self.activation!r}, but is {activation!r}",
        )
        return dataclasses.replace(self, activation=activation)
