"""Puts the arrays of files of Keras 1 and 2 into layers of Keras 3."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from tf_lstm_ops import _cells, _keras_private
from tf_lstm_ops._arrays import Array
from tf_lstm_ops.files.contents import Contents, NamedArray
from tf_lstm_ops.keras.old_files.arguments import LINEAR
from tf_lstm_ops.weights import keras_2

# The number of gates of a cell, by the name of its class or of a base.
_GATES = {
    **{f"{cell.keras}Cell": len(cell.gates) for cell in (_cells.LSTM, _cells.GRU)},
    "ConvLSTMCell": len(_cells.LSTM.gates),
}
_ARRAYS_OF_KERAS_1 = 3  # W, U and b of each gate
_CONVOLUTIONS = (keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D)


def values_of(
    layer: Any, arrays: Sequence[NamedArray], file: Contents
) -> Iterator[tuple[Any, Array]]:
    """The values of the weights of a layer.

    Args:
      layer: a built layer or model of Keras 3.
      arrays: its arrays in the file, in order.
      file: the file.

    Yields:
      A variable of the layer, and its value.

    Raises:
      ValueError: the arrays are not those of such a layer.
    """
    for part, own in _split(layer, list(arrays)):
        yield from _values_of_one(part, own, file)


def count(layer: Any) -> int:
    """The number of arrays of a layer in files of Keras 2.

    Args:
      layer: a built layer or model of Keras 3.

    Returns:
      The number.
    """
    return len(_weights(layer))


def _weights(layer: Any) -> list[Any]:
    """The weights in Keras 2's order, without states of recurrent layers."""
    return [*layer.trainable_weights, *_fixed_weights(layer)]


def _fixed_weights(layer: Any) -> list[Any]:
    """The weights that are not trainable."""
    states = {id(s) for part in _keras_private.layers_of(layer) for s in _states(part)}
    return [w for w in layer.non_trainable_weights if id(w) not in states]


def _states(layer: Any) -> list[Any]:
    """The variables that a stateful layer keeps."""
    return keras.tree.flatten(getattr(layer, "states", None) or [])


def _parts(layer: Any) -> list[Any] | None:
    """The layers that a layer consists of, in Keras 2's order; None if its arrays are its own."""
    if isinstance(layer, keras.Model):
        return list(layer.layers)
    if isinstance(layer, keras.layers.Bidirectional):
        return [layer.forward_layer, layer.backward_layer]
    if isinstance(layer, keras.layers.TimeDistributed):
        return [layer.layer]
    cell = getattr(layer, "cell", None)
    if isinstance(cell, keras.layers.StackedRNNCells):
        return list(cell.cells)
    return None


def _split(layer: Any, arrays: list[NamedArray]) -> Iterator[tuple[Any, list[NamedArray]]]:
    """The layers without parts, each with its arrays.

    Those of a layer with parts are the trainable ones of all parts, then the others of all parts.
    """
    parts = _parts(layer)
    if parts is None:
        yield layer, arrays
        return
    if isinstance(layer, keras.layers.Bidirectional):  # Keras 1 has more arrays of a direction
        half = len(arrays) // 2
        yield from _split(parts[0], arrays[:half])
        yield from _split(parts[1], arrays[half:])
        return
    if len(parts) == 1:
        yield from _split(parts[0], arrays)
        return
    counts = [(len(part.trainable_weights), len(_fixed_weights(part))) for part in parts]
    expected = sum(map(sum, counts))
    if len(arrays) != expected:
        raise ValueError(f"layer {layer.name} has {expected} weights, the file {len(arrays)}")
    first, second = 0, sum(trainable for trainable, _ in counts)
    for part, (trainable, fixed) in zip(parts, counts, strict=True):
        own = arrays[first : first + trainable] + arrays[second : second + fixed]
        first, second = first + trainable, second + fixed
        yield from _split(part, own)


def _values_of_one(
    layer: Any, arrays: list[NamedArray], file: Contents
) -> Iterator[tuple[Any, Array]]:
    weights = _weights(layer)
    _require_order(layer, weights, arrays)
    values = _converted(layer, [array.value for array in arrays], file)
    names = ", ".join(f"{array.name} {array.value.shape}" for array in arrays) or "none"
    if len(values) != len(weights):
        raise ValueError(
            f"layer {layer.name} has {len(weights)} weights, and the arrays of the file are {names}"
        )
    for weight, value in zip(weights, values, strict=True):
        if tuple(weight.shape) != value.shape:
            raise ValueError(
                f"{weight.name} of layer {layer.name} must be {tuple(weight.shape)}, and the "
                f"arrays of the file are {names}{_hint(layer, value)}"
            )
    yield from zip(weights, values, strict=True)


def _hint(layer: Any, value: Array) -> str:
    if _gates(layer) == 3 and value.ndim in (1, 2):
        is_after = value.ndim == 2
        return f". Make the layer with reset_after={is_after}"
    return ""


def _require_order(layer: Any, weights: list[Any], arrays: list[NamedArray]) -> None:
    """Checks names of arrays, which tell kernels of the same shape apart."""
    own = [weight.name for weight in weights]
    given = [array.name.rpartition("/")[2].partition(":")[0] for array in arrays]
    for position, name in enumerate(given):
        if own.count(name) == 1 and given.count(name) == 1 and own.index(name) != position:
            raise ValueError(
                f"the arrays of layer {layer.name} are {', '.join(given)} in the file, not "
                f"{', '.join(own)}"
            )


def _gates(layer: Any) -> int | None:
    names = [base.__name__ for base in type(keras_2.cell_of(layer)).__mro__]
    return next((_GATES[name] for name in names if name in _GATES), None)


def _converted(layer: Any, arrays: list[Array], file: Contents) -> list[Array]:
    """The arrays as Keras 3 has them."""
    gates = _gates(layer)
    if gates is not None:
        if len(arrays) == _ARRAYS_OF_KERAS_1 * gates:
            arrays = _joined(arrays, _cells.BY_GATES[gates])
        arrays = keras_2.from_cudnn_layer(arrays, gates)
    if isinstance(layer, _CONVOLUTIONS):
        arrays = _convolution(layer, arrays, file)
    if file.major >= 3:
        return arrays
    part = keras_2.cell_of(layer)
    functions = {key: getattr(part, key, None) for key in ("activation", "recurrent_activation")}
    is_hard = {key: f is keras.activations.hard_sigmoid for key, f in functions.items()}
    if gates is not None and is_hard["recurrent_activation"]:
        arrays = keras_2.with_hard_sigmoid_of_keras_3(arrays, gates)
    if is_hard["activation"]:
        if type(part).__name__ not in LINEAR:
            raise ValueError(
                f"layer {layer.name} has activation='hard_sigmoid', which is another function in "
                f"Keras {file.version}: make it with activation=tf_lstm_ops.keras."
                "keras_2_hard_sigmoid"
            )
        arrays = [np.asarray(a * keras_2.HARD_SIGMOID_RATIO, a.dtype) for a in arrays]
    return arrays


def _joined(arrays: list[Array], cell: _cells.Cell) -> list[Array]:
    """Kernel, recurrent kernel and bias of the arrays of each gate."""
    count = _ARRAYS_OF_KERAS_1
    starts = [cell.keras_1.index(gate) * count for gate in cell.gates]
    return [np.concatenate([arrays[at + k] for at in starts], axis=-1) for k in range(count)]


def _convolution(layer: Any, arrays: list[Array], file: Contents) -> list[Array]:
    """Kernels of Keras 1, and of Theano, whose convolutions run backwards through the kernel."""
    if not arrays:
        return arrays
    kernel, *rest = arrays
    if kernel.ndim == 4 and isinstance(layer, keras.layers.Conv1D):
        steps = layer.kernel_size[0]
        if kernel.shape[:2] != (steps, 1):  # [filters, inputs, steps, 1]
            kernel = kernel.transpose(2, 3, 1, 0)
        kernel = kernel[:, 0] if kernel.shape[:2] == (steps, 1) else kernel
    if file.backend == "theano":
        kernel = np.flip(kernel, tuple(range(kernel.ndim - 2)))
    return [kernel, *rest]
