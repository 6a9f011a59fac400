"""The description of each Keras layer that a session computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np

from tf_lstm_ops import _deviation
from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import file, recurrent_layers
from tf_lstm_ops.inference.recurrent_layers import array, unsupported
from tf_lstm_ops.keras import class_names
from tf_lstm_ops.keras.activations import described, name_of
from tf_lstm_ops.keras.of_cell import GRUOfCell, LSTMOfCell, SimpleRNNOfCell

_RECURRENT = (
    *(keras.layers.LSTM, ours.LSTM, LSTMOfCell),
    *(keras.layers.GRU, ours.GRU, GRUOfCell),
    *(keras.layers.SimpleRNN, ours.SimpleRNN, SimpleRNNOfCell),
)
# Which do nothing in inference. Keras' versions do not all have every one.
_IDENTITIES = tuple(
    getattr(keras.layers, name)
    for name in (
        *("InputLayer", "Dropout", "SpatialDropout1D", "GaussianDropout", "GaussianNoise"),
        *("AlphaDropout", "ActivityRegularization", "Identity"),
    )
    if hasattr(keras.layers, name)
)


def describe(layer: Any) -> Iterator[file.Layer]:
    """Describes a layer and copies its weights.

    Args:
      layer: a Keras layer.

    Yields:
      Its records: none if the layer does nothing in inference, one for each layer of a stack.

    Raises:
      ValueError: the layer is not built, or a session does not compute it.
    """
    require_supported(layer)
    yield from _function_of(layer)(layer)


def require_supported(layer: Any) -> None:
    """Checks what all layers must have.

    Args:
      layer: a Keras layer.

    Raises:
      ValueError: it is of an unknown class, has a replaced method or cell, is not built, returns
        states or computes in another type.
    """
    if reason := _deviation.of(layer):
        raise unsupported(layer, reason)
    _function_of(layer)
    if type(layer) is keras.layers.InputLayer:
        require_supported_input(layer, layer.output)
        return
    for dtype in (layer.compute_dtype, layer.variable_dtype):
        if dtype not in ("float32", None):
            raise unsupported(layer, f"it computes in or has weights of {dtype}, not float32")
    if not layer.autocast:
        raise unsupported(layer, "it has autocast=False")
    if getattr(layer, "return_state", False):
        raise unsupported(layer, "it has return_state=True")
    if getattr(layer, "quantization_mode", None) is not None:
        raise unsupported(layer, f"its weights are quantized to {layer.quantization_mode}")
    if not (layer.built or type(layer) in _IDENTITIES):
        raise ValueError(f"layer {layer.name} is not built. Call it once, or its model")


def require_supported_input(layer: Any, tensor: Any) -> None:
    """Checks an input of a model.

    Args:
      layer: the model or the InputLayer.
      tensor: the symbolic input.

    Raises:
      ValueError: it is sparse, ragged or of a type to which Keras would round a float32.
    """
    if getattr(tensor, "sparse", False) or getattr(tensor, "ragged", False):
        raise unsupported(layer, "its input is sparse or ragged")
    if tensor.dtype not in ("float32", "float64"):
        raise unsupported(layer, f"its input has dtype {tensor.dtype}, not float32")


def _function_of(layer: Any) -> Callable[[Any], Iterator[file.Layer]]:
    """The function that describes a layer of this class."""
    kind = _deviation.class_that_computes(type(layer))
    if kind in _IDENTITIES:
        return _nothing
    if kind in _RECURRENT:
        return _recurrent
    if kind in _OTHERS:
        return _OTHERS[kind]
    known = (*_RECURRENT, *_OTHERS, *_IDENTITIES)
    reason = (
        f"{class_names.public(kind)} is not a class that a session computes"
        f"{class_names.why_not_known(kind, known)}. help(tf_lstm_ops.inference.Session) lists "
        "the layers"
    )
    if kind is keras.layers.RNN:
        reason = (
            "it is keras.layers.RNN; tf_lstm_ops.keras.convert_model makes a layer that a session "
            "computes from RNN of LSTM, GRU or SimpleRNN cells"
        )
    raise unsupported(layer, reason)


def _nothing(layer: Any) -> Iterator[file.Layer]:
    yield from ()


def _recurrent(layer: Any) -> Iterator[file.Layer]:
    yield recurrent_layers.single(layer)


def _bidirectional(layer: Any) -> Iterator[file.Layer]:
    parts: list[file.Layer] = []
    for part in (layer.forward_layer, layer.backward_layer):
        if _deviation.class_that_computes(type(part)) not in _RECURRENT:
            raise unsupported(layer, f"its layer {part.name} is a {type(part).__name__}")
        require_supported(part)
        parts += _recurrent(part)
    yield recurrent_layers.both(layer, *parts)


def _dense(layer: Any) -> Iterator[file.Layer]:
    arrays = {"kernel": array(layer.kernel)}
    if layer.bias is not None:
        arrays["bias"] = array(layer.bias)
    inputs, units = arrays["kernel"].shape
    yield file.Layer(
        layer.name,
        file.DENSE,
        inputs,
        units,
        units,
        activation=_function(layer, layer.activation),
        arrays=[arrays],
    )


def _time_distributed(layer: Any) -> Iterator[file.Layer]:
    inner = layer.layer
    if type(inner) not in (keras.layers.Dense, keras.layers.Activation, *_IDENTITIES):
        raise unsupported(layer, f"its layer {inner.name} is a {type(inner).__name__}")
    yield from describe(inner)


def _activation(layer: Any) -> Iterator[file.Layer]:
    number = _function(layer, layer.activation)
    if number:  # linear does nothing
        yield file.Layer(layer.name, file.ACTIVATION, activation=number)


def _relu(layer: Any) -> Iterator[file.Layer]:
    if layer.max_value is not None or layer.negative_slope or layer.threshold:
        raise unsupported(layer, "it has max_value, negative_slope or threshold")
    yield file.Layer(layer.name, file.ACTIVATION, activation=file.FUNCTIONS["relu"])


def _function(layer: Any, function: Any) -> int:
    """The number of an activation of a dense or activation layer."""
    name = "softmax" if function is keras.activations.softmax else name_of(function)
    if name is None:
        raise unsupported(
            layer,
            f"its activation is {described(function)}, not one of "
            f"{', '.join(file.DENSE_FUNCTIONS)}",
        )
    return file.DENSE_FUNCTIONS[name]


def _masking(layer: Any) -> Iterator[file.Layer]:
    with np.errstate(over="ignore"):
        value = float(np.float32(layer.mask_value))  # the layer compares in float32
    if not math.isfinite(value):
        raise unsupported(layer, f"its mask_value is {layer.mask_value}, not finite in float32")
    yield file.Layer(layer.name, file.MASKING, number=value)


_OTHERS: dict[type, Callable[[Any], Iterator[file.Layer]]] = {
    keras.layers.Bidirectional: _bidirectional,
    ours.Bidirectional: _bidirectional,
    ours.StackedLSTM: recurrent_layers.stacked,
    ours.StackedGRU: recurrent_layers.stacked,
    keras.layers.Dense: _dense,
    keras.layers.TimeDistributed: _time_distributed,
    keras.layers.Activation: _activation,
    keras.layers.ReLU: _relu,
    keras.layers.Masking: _masking,
}
