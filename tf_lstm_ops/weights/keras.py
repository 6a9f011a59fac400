"""The weights of Keras' layers."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

from tf_lstm_ops import _cells, _deviation, _received, _targets
from tf_lstm_ops._arrays import Array, as_array, as_numbers, require_shape
from tf_lstm_ops._refusal import Refused, require
from tf_lstm_ops.weights import keras_2
from tf_lstm_ops.weights.canonical import CellWeights, Self, Weights


def from_keras(cls: type[Self], source: Any) -> Self:
    """From a Keras layer.

    Args:
      source: a StackedLSTM or StackedGRU; or a recurrent layer, a Bidirectional around one, or what
        their `get_weights()` returns (arrays, tensors or variables); or a list of these for the
        layers of a multi-layer RNN, the first layer first. The arrays of CuDNNLSTM and CuDNNGRU of
        Keras 2 are known by the size of their bias. Of a layer of tf_keras with
        recurrent_activation="hard_sigmoid", the gates' columns are scaled by 1.2, so that Keras 3's
        hard_sigmoid of them is that of Keras 2.

    Returns:
      The weights of all layers.

    Raises:
      ValueError: the weights have other shapes than this kind of layer, the sizes of two layers are
        inconsistent, a layer is not built yet, or one has a replaced method or cell, or an argument
        that the formats do not have, such as layer_normalization.
    """
    if hasattr(source, "_arrays_by_layer"):
        _require_known(source)
        source = source._arrays_by_layer()
    nested = isinstance(source, list | tuple) and source
    several = nested and (isinstance(source[0], list | tuple) or hasattr(source[0], "weights"))
    named = enumerate(source) if several else [(None, source)]
    gates = len(cls._CELL.gates)
    layers = [_keras_cells(x, "source" + f"[{k}]" * (k is not None), gates) for k, x in named]
    directions = {len(cells) for cells in layers}
    require(len(directions) == 1, "some of the layers are bidirectional and some are not")
    arrays = [keras_2.from_cudnn_layer(cell, gates) for layer in layers for cell in layer]
    for cell in arrays:
        _check_kernels(*cell[:2])
    cells = tuple(_from_keras(cls._CELL, cell) for cell in arrays)
    said = _OPTIONS.get(cls._CELL)
    options = said(recurrent_layers(source), arrays) if said else {}
    return cls(cells, directions.pop(), **options)


def to_keras(self: Weights, *, use_bias: bool = True) -> list[Array] | list[list[Array]]:
    """The arrays for `set_weights` of a Keras layer, or of a Bidirectional around one.

    Only `tf_lstm_ops.keras.LSTM` takes peepholes and projections.

    Args:
      use_bias: False for a layer made with use_bias=False.

    Returns:
      List of arrays; for several layers a list of such lists.

    Raises:
      ValueError: use_bias is False and a bias is not zero.
    """
    self._require_zero_biases(use_bias)
    layers: list[list[Array]] = [[] for _ in range(self.num_layers)]
    has_both_biases = getattr(self, "reset_after", False)
    for k, cell in enumerate(self.cells):
        arrays = _to_keras(cell, has_both_biases, use_bias)
        layers[k // self.directions] += map(np.array, arrays)
    return layers[0] if len(layers) == 1 else layers


def _from_keras(cell: _cells.Cell, arrays: list[Array]) -> CellWeights:
    kernel, recurrent_kernel, *rest = arrays
    is_lstm = cell is _cells.LSTM
    zero = np.zeros(kernel.shape[-1], kernel.dtype)
    bias = rest.pop(0) if rest and (rest[0].ndim == 1 or not is_lstm) else zero
    # [P, 4H] with P < H if there is a projection, which is then the last array.
    projected = rest and is_lstm and recurrent_kernel.shape[0] * 4 < recurrent_kernel.shape[-1]
    projection = rest.pop() if projected else None
    peephole = rest.pop(0) if rest and is_lstm else None
    layer = f"{cell.words.partition(' ')[0]} {cell.keras} layer"
    require(not rest, f"{len(arrays)} arrays are more than those of {layer}")
    # Keras converts its bias to cuDNN's recurrent bias, too. That of a GRU may be both.
    biases = zero, bias
    if cell is _cells.GRU:
        require(
            bias.ndim == 1 or (bias.ndim == 2 and len(bias) == 2),
            f"bias must be (2, 3H), or (3H,) with reset_after=False, but is {bias.shape}",
        )
        biases = (bias, zero) if bias.ndim == 1 else (bias[0], bias[1])
    return CellWeights(kernel, recurrent_kernel, *biases, peephole, projection)


def _to_keras(cell: CellWeights, has_both_biases: bool, use_bias: bool) -> list[Array]:
    one, other = cell.bias, cell.recurrent_bias
    bias = np.stack([one, other]) if has_both_biases else one + other
    given = (bias if use_bias else None, cell.peephole, cell.projection)
    return [cell.kernel, cell.recurrent_kernel, *(a for a in given if a is not None)]


def _reset_after(layers: list[Any], arrays: list[list[Array]]) -> dict[str, Any]:
    kinds = {type(layer).__name__ for layer in layers if not hasattr(layer.cell, "reset_after")}
    require(not kinds, f"source must be a GRU but has layers of class {', '.join(sorted(kinds))}")
    said = {layer.cell.reset_after for layer in layers}
    said |= {cell[2].ndim == 2 for cell in arrays if len(cell) > 2}
    require(len(said) < 2, "some of the layers have reset_after=False and some do not")
    return {"reset_after": said.pop() if said else True}


def _activation(layers: list[Any], arrays: list[list[Array]]) -> dict[str, Any]:
    kinds = {type(x).__name__ for x in layers if type(x.cell).__name__ != "SimpleRNNCell"}
    require(
        not kinds, f"source must be a SimpleRNN but has layers of class {', '.join(sorted(kinds))}"
    )
    said = {getattr(x.cell.activation, "__name__", repr(x.cell.activation)) for x in layers}
    require(len(said) < 2, f"the layers have different activations: {', '.join(sorted(said))}")
    return {"activation": said.pop()} if said else {}


# The argument of the weights of a cell that layers say.
_OPTIONS = {_cells.GRU: _reset_after, _cells.SIMPLE_RNN: _activation}


def recurrent_layers(source: Any) -> list[Any]:
    """The recurrent layers of a source of `from_keras`.

    Args:
      source: as `from_keras` takes it.

    Returns:
      The layers of one direction, in order; none of lists of arrays.
    """
    if hasattr(source, "forward_layer"):
        return [source.forward_layer, source.backward_layer]
    if hasattr(source, "cell") and not keras_2.is_cudnn_layer(source):
        return [source]
    if isinstance(source, list | tuple):
        return [layer for part in source for layer in recurrent_layers(part)]
    return []


def _require_known(layer: Any) -> None:
    """A layer may compute with its weights what its class does not say."""
    if reason := _deviation.of(layer):
        raise ValueError(
            f"the weights of {layer.name} may have another meaning than its class says: {reason}. "
            "If they do not, pass its get_weights()"
        )


def _require_known_arguments(layer: Any) -> None:
    """An argument of this package's layers may change what the weights mean."""
    if not type(layer).__module__.startswith("tf_lstm_ops."):
        return
    given = [name for name in _targets.OWN if getattr(layer, name, None) not in (None, False)]
    if unknown := [name for name in given if not _targets.is_listed(_targets.WEIGHTS, name)]:
        raise Refused(
            f"{layer.name} has {' and '.join(unknown)}, which other formats of weights do not "
            "have. Its get_weights() are arrays for a layer with the same arguments"
        )


def _require_own_weights(layer: Any) -> None:
    """`get_weights` does not have a tensor that was assigned to an attribute of the cell."""
    if reason := _deviation.of_weights(layer):
        raise ValueError(
            f"the weights of {layer.name} are not those with which it computes: {reason}. Pass a "
            "list of arrays, as get_weights() returns them"
        )


def _check_kernels(kernel: Array, recurrent_kernel: Array) -> None:
    """Checks the sizes before arrays of them are made: they may be any without elements."""
    require_shape("kernel", kernel, "I", "G*H")
    require_shape("recurrent_kernel", recurrent_kernel, "P", kernel.shape[1])
    require(recurrent_kernel.size, f"recurrent_kernel must not be empty: {recurrent_kernel.shape}")


def _keras_cells(source: Any, name: str, gates: int) -> list[list[Array]]:
    """The arrays of each direction of a Keras layer, or of its `get_weights()`."""
    if hasattr(source, "forward_layer"):
        layers = [source.forward_layer, source.backward_layer]
        return [cell for layer in layers for cell in _keras_cells(layer, name, gates)]
    if keras_2.is_cudnn_layer(source):
        source = source.get_weights()
    elif hasattr(source, "cell"):
        _require_known(source)
        _require_known_arguments(source)
        require(source.weights, f"{source.name} has no weights yet; build it first")
        _require_own_weights(source)
        cell = [as_array(w) for w in source.get_weights()]
        if keras_2.has_hard_sigmoid(source):
            cell = keras_2.with_hard_sigmoid_of_keras_3(cell, gates)
        return [cell]
    if not isinstance(source, list | tuple) or len(source) < 2:
        raise ValueError(
            f"{name} is neither a recurrent layer nor the list of its weights: "
            f"{reprlib.repr(source)}{_received.instead_of_layer(source)}"
        )
    arrays = [as_numbers(f"{name}[{k}]", a) for k, a in enumerate(source)]
    half = len(arrays) // 2
    # The shape of a kernel does not occur again in a direction's own arrays from the third one on.
    two = half > 1 and arrays[0].shape == arrays[half].shape
    return [arrays[:half], arrays[half:]] if two else [arrays]
