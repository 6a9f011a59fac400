"""The layer of a session for each Keras layer that a session computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import keras

from tf_lstm_ops import _deviation
from tf_lstm_ops import keras as ours
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_keras import activations, recurrent
from tf_lstm_ops.inference.from_keras.activations import function
from tf_lstm_ops.inference.from_keras.recurrent import array, computing, unsupported
from tf_lstm_ops.inference.layers.recurrent import Recurrent, both
from tf_lstm_ops.keras import class_names
from tf_lstm_ops.keras.of_cell import GRUOfCell, LSTMOfCell, SimpleRNNOfCell

FLOATS = ("float32", "float64")  # types of inputs

_RECURRENT = (
    *(keras.layers.LSTM, ours.LSTM, LSTMOfCell),
    *(keras.layers.GRU, ours.GRU, GRUOfCell),
    *(keras.layers.SimpleRNN, ours.SimpleRNN, SimpleRNNOfCell),
)
_BIDIRECTIONAL = (keras.layers.Bidirectional, ours.Bidirectional)
_STACKED = (ours.StackedLSTM, ours.StackedGRU)
# Which do nothing in inference. Keras' versions do not all have every one.
_IDENTITIES = tuple(
    getattr(keras.layers, name)
    for name in (
        *("InputLayer", "Dropout", "SpatialDropout1D", "GaussianDropout", "GaussianNoise"),
        *("AlphaDropout", "ActivityRegularization", "Identity"),
    )
    if hasattr(keras.layers, name)
)


# Whose constructors set autocast=False, which does not change the results with float32.
_WITHOUT_AUTOCAST = tuple(
    getattr(keras.layers, name)
    for name in ("Embedding", "BatchNormalization", "LayerNormalization", "RMSNormalization")
    if hasattr(keras.layers, name)
)


def translated(layer: Any) -> layers.Layer:
    """The layer of a session with a copy of the weights.

    Args:
      layer: a Keras layer, no model and no TimeDistributed.

    Returns:
      The layer.

    Raises:
      ValueError: the layer is not built, or a session does not compute it.
    """
    require_supported(layer)
    with computing(layer):
        return _function_of(layer)(layer)


def is_identity(layer: Any) -> bool:
    """Whether a layer does nothing in inference.

    Args:
      layer: a Keras layer.

    Returns:
      Whether it is of such a class.
    """
    return _deviation.class_that_computes(type(layer)) in _IDENTITIES


def computes_with_masks(layer: Any) -> bool:
    """Whether a mask changes elements that a layer computes, apart from recurrent layers and means.

    Args:
      layer: a Keras layer.

    Returns:
      Whether it is of such a class.
    """
    kinds = (
        keras.layers.Multiply,
        keras.layers.Maximum,
        keras.layers.Minimum,
        keras.layers.Softmax,
    )
    return _deviation.class_that_computes(type(layer)) in kinds


def is_recurrent(layer: Any) -> bool:
    """Whether the arguments of a call may have an initial state.

    Args:
      layer: a Keras layer.

    Returns:
      Whether it is a recurrent layer or a Bidirectional.
    """
    kind = _deviation.class_that_computes(type(layer))
    return kind in (*_RECURRENT, *_BIDIRECTIONAL, *_STACKED)


def require_supported(layer: Any) -> None:
    """Checks what all layers must have.

    Args:
      layer: a Keras layer.

    Raises:
      ValueError: it is of an unknown class, has a replaced method or cell, is not built, or
        computes in another type.
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
    if not (layer.autocast or _deviation.class_that_computes(type(layer)) in _WITHOUT_AUTOCAST):
        raise unsupported(layer, "it has autocast=False")
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
    if tensor.dtype not in FLOATS and not tensor.dtype.startswith(("int", "uint")):
        raise unsupported(layer, f"its input has dtype {tensor.dtype}, not float32")


def _function_of(layer: Any) -> Callable[[Any], layers.Layer]:
    """The function that translates a layer of this class."""
    kind = _deviation.class_that_computes(type(layer))
    if kind in _IDENTITIES:
        return lambda layer: layers.Identity(layer.name)
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


# Recurrent layers.


def _recurrent(layer: Any) -> layers.Layer:
    return Recurrent([recurrent.single(layer)], layer.name, layer.return_state)


def _bidirectional(layer: Any) -> layers.Layer:
    parts = []
    for part in (layer.forward_layer, layer.backward_layer):
        if _deviation.class_that_computes(type(part)) not in _RECURRENT:
            raise unsupported(layer, f"its layer {part.name} is a {type(part).__name__}")
        require_supported(part)
        parts.append(recurrent.single(part))
    if layer.merge_mode is None:
        raise unsupported(layer, "merge_mode=None returns two outputs")
    record = both(layer.name, parts[0], parts[1], layer.merge_mode)
    return Recurrent([record], layer.name, getattr(layer, "return_state", False))


def _stacked(layer: Any) -> layers.Layer:
    return Recurrent(recurrent.stacked(layer), layer.name, layer.return_state)


# Layers with weights.


def _optional(weight: Any) -> Any:
    return None if weight is None else array(weight)


def _dense(layer: Any) -> layers.Layer:
    return layers.Dense(
        array(layer.kernel), _optional(layer.bias), function(layer, layer.activation), layer.name
    )


def _embedding(layer: Any) -> layers.Layer:
    return layers.Embedding(array(layer.embeddings), layer.mask_zero, layer.name)


def _require_channels_last(layer: Any) -> None:
    if getattr(layer, "data_format", "channels_last") != "channels_last":
        raise unsupported(layer, f"it has data_format={layer.data_format!r}")


def _windows(layer: Any) -> dict[str, Any]:
    """The arguments that all convolutions have."""
    _require_channels_last(layer)
    return {
        "bias": _optional(layer.bias),
        "strides": layer.strides,
        "padding": layer.padding,
        "dilation_rate": layer.dilation_rate,
        "activation": function(layer, layer.activation),
        "name": layer.name,
    }


def _convolution(layer: Any) -> layers.Layer:
    return layers.Conv1D(array(layer.kernel), groups=layer.groups, **_windows(layer))


def _depthwise(layer: Any) -> layers.Layer:
    return layers.DepthwiseConv1D(array(layer.kernel), **_windows(layer))


def _separable(layer: Any) -> layers.Layer:
    kernels = array(layer.depthwise_kernel), array(layer.pointwise_kernel)
    return layers.SeparableConv1D(*kernels, **_windows(layer))


# Normalisation.


def _last_size(layer: Any) -> int:
    """The size of the last axis, along which the layer must normalise."""
    shape = layer.get_build_config()["input_shape"]
    axis = layer.axis if isinstance(layer.axis, int) else [*layer.axis]
    if axis not in (-1, len(shape) - 1, [-1], [len(shape) - 1]):
        raise unsupported(layer, f"it normalizes axis {axis}, not the last one")
    return int(shape[-1])


def _batch_normalization(layer: Any) -> layers.Layer:
    _last_size(layer)
    return layers.BatchNormalization(
        gamma=_optional(layer.gamma),
        beta=_optional(layer.beta),
        mean=array(layer.moving_mean),
        variance=array(layer.moving_variance),
        epsilon=layer.epsilon,
        name=layer.name,
    )


def _layer_normalization(layer: Any) -> layers.Layer:
    if getattr(layer, "rms_scaling", False):
        raise unsupported(layer, "it has rms_scaling=True")
    weights = _optional(layer.gamma), _optional(layer.beta)
    return layers.LayerNormalization(_last_size(layer), *weights, layer.epsilon, layer.name)


def _rms_normalization(layer: Any) -> layers.Layer:
    return layers.RMSNormalization(
        _last_size(layer), _optional(layer.scale), layer.epsilon, layer.name
    )


# Layers without weights.


def _pooling(kind: Callable[..., layers.Layer]) -> Callable[[Any], layers.Layer]:
    def pooling(layer: Any) -> layers.Layer:
        _require_channels_last(layer)
        return kind(layer.pool_size, layer.strides, layer.padding, layer.name)

    return pooling


def _global_pooling(kind: Callable[..., layers.Layer]) -> Callable[[Any], layers.Layer]:
    def pooling(layer: Any) -> layers.Layer:
        _require_channels_last(layer)
        return kind(layer.keepdims, layer.name)

    return pooling


def _plain(kind: Callable[..., layers.Layer], *attributes: str) -> Callable[[Any], layers.Layer]:
    """A translation that passes attributes of Keras' layer on."""

    def plain(layer: Any) -> layers.Layer:
        _require_channels_last(layer)
        arguments = [getattr(layer, attribute) for attribute in attributes]
        return kind(*arguments, layer.name)

    return plain


def _activation(layer: Any) -> layers.Layer:
    return activations.layer_of(layer, layer.activation)


def _prelu(layer: Any) -> layers.Layer:
    shared = sorted(layer.shared_axes or [])
    if shared != [*range(1, len(shared) + 1)]:
        raise unsupported(layer, f"it has shared_axes={shared}, not the first axes")
    return layers.PReLU(array(layer.alpha), layer.name)


def _softmax(layer: Any) -> layers.Layer:
    if layer.axis not in (-1, [-1], (-1,)):
        raise unsupported(layer, f"it has axis={layer.axis}, not -1")
    return layers.Softmax(layer.name)


def _classes(names: Iterable[str], translate: Any) -> dict[type, Callable[[Any], layers.Layer]]:
    """A row for each class that this Keras has."""
    return {getattr(keras.layers, name): translate for name in names if hasattr(keras.layers, name)}


def _time_distributed(layer: Any) -> layers.Layer:
    raise AssertionError(f"{layer.name} is applied by from_keras")


_OTHERS: dict[type, Callable[[Any], layers.Layer]] = {
    **dict.fromkeys(_BIDIRECTIONAL, _bidirectional),
    **dict.fromkeys(_STACKED, _stacked),
    keras.layers.TimeDistributed: _time_distributed,
    keras.layers.Dense: _dense,
    keras.layers.Embedding: _embedding,
    keras.layers.Conv1D: _convolution,
    keras.layers.DepthwiseConv1D: _depthwise,
    keras.layers.SeparableConv1D: _separable,
    keras.layers.BatchNormalization: _batch_normalization,
    keras.layers.LayerNormalization: _layer_normalization,
    **_classes(["RMSNormalization"], _rms_normalization),
    keras.layers.MaxPooling1D: _pooling(layers.MaxPooling1D),
    keras.layers.AveragePooling1D: _pooling(layers.AveragePooling1D),
    keras.layers.GlobalMaxPooling1D: _global_pooling(layers.GlobalMaxPooling1D),
    keras.layers.GlobalAveragePooling1D: _global_pooling(layers.GlobalAveragePooling1D),
    keras.layers.Flatten: _plain(layers.Flatten),
    keras.layers.Reshape: _plain(layers.Reshape, "target_shape"),
    keras.layers.Permute: _plain(layers.Permute, "dims"),
    keras.layers.RepeatVector: _plain(layers.RepeatVector, "n"),
    keras.layers.UpSampling1D: _plain(layers.UpSampling1D, "size"),
    keras.layers.ZeroPadding1D: _plain(layers.ZeroPadding1D, "padding"),
    keras.layers.Cropping1D: _plain(layers.Cropping1D, "cropping"),
    keras.layers.Concatenate: _plain(layers.Concatenate, "axis"),
    keras.layers.Add: _plain(layers.Add),
    keras.layers.Subtract: _plain(layers.Subtract),
    keras.layers.Multiply: _plain(layers.Multiply),
    keras.layers.Average: _plain(layers.Average),
    keras.layers.Maximum: _plain(layers.Maximum),
    keras.layers.Minimum: _plain(layers.Minimum),
    keras.layers.Activation: _activation,
    keras.layers.ReLU: _plain(layers.ReLU, "max_value", "negative_slope", "threshold"),
    keras.layers.LeakyReLU: _plain(layers.LeakyReLU, "negative_slope"),
    keras.layers.ELU: _plain(layers.ELU, "alpha"),
    keras.layers.PReLU: _prelu,
    keras.layers.Softmax: _softmax,
    keras.layers.Masking: _plain(layers.Masking, "mask_value"),
}
