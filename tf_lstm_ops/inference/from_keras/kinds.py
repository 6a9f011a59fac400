"""The layer of a session for each Keras layer that a session computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import keras

from tf_lstm_ops import _deviation, _keras_private
from tf_lstm_ops import keras as ours
from tf_lstm_ops._refusal import refuse, require
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_keras import activations, call_masks, recurrent
from tf_lstm_ops.inference.from_keras.activations import function
from tf_lstm_ops.inference.from_keras.recurrent import array, computing, unsupported
from tf_lstm_ops.inference.layers.bidirectional import merged
from tf_lstm_ops.inference.layers.recurrent import Recurrent
from tf_lstm_ops.inference.reader import Reader
from tf_lstm_ops.keras import class_names
from tf_lstm_ops.keras import options as keras_options
from tf_lstm_ops.keras.of_cell import GRUOfCell, LSTMOfCell, SimpleRNNOfCell
from tf_lstm_ops.keras.sequence_mask import SequenceMask

FLOATS = ("float32", "float64")  # types of inputs

# Arguments that the weights tell, or that change nothing in inference, of any layer.
_IGNORED = (
    *("units", "filters", "kernel_size", "depth_multiplier", "input_dim", "output_dim"),
    *("use_bias", "center", "scale", "rank", "pool_mode", "pool_dimensions"),
    *("momentum", "synchronized", "renorm", "renorm_clipping", "renorm_momentum"),
    *("seed", "lora_rank", "lora_alpha"),
    "quantization_config",  # `require_supported` refuses quantized weights
)
_OF_WEIGHTS = ("initializer", "regularizer", "constraint")  # the ends of names of arguments

Translate = Callable[[Any, Reader], layers.Layer]


class Kind(NamedTuple):
    """How a session computes a class of Keras.

    Attributes:
      translate: the layer of a session for one of Keras and its arguments.
      computes_with_masks: whether a mask changes elements that a layer computes, apart from
        recurrent layers and means.
      has_autocast: False: its constructor sets autocast=False, which does not change the results
        with float32.
    """

    translate: Translate
    computes_with_masks: bool = False
    has_autocast: bool = True


def translated(layer: Any) -> layers.Layer:
    """The layer of a session with a copy of the weights.

    Args:
      layer: a Keras layer, no model.

    Returns:
      The layer.

    Raises:
      ValueError: the layer is not built, or a session does not compute it.
    """
    require_supported(layer)
    with computing(layer):
        options = _options(layer)
        made = _kind_of(layer).translate(layer, options)
        options.finish(lambda names: f"it has {', '.join(names)}, which a session does not know")
    return made


def _options(layer: Any) -> Reader:
    """The arguments of the constructor of a layer."""
    defaults = keras_options.arguments_of(type(layer))
    found = Reader({n: getattr(layer, n) for n in defaults if hasattr(layer, n)}, defaults)
    found.ignore((*_IGNORED, *(name for name in defaults if name.endswith(_OF_WEIGHTS))))
    data_format = found.take("data_format", "channels_last")
    require(data_format == "channels_last", f"it has data_format={data_format!r}")
    return found


def is_identity(layer: Any) -> bool:
    """Whether a layer does nothing in inference.

    Args:
      layer: a Keras layer.

    Returns:
      Whether it is of such a class.
    """
    return _is_translated_by(layer, _identity)


def is_recurrent(layer: Any) -> bool:
    """Whether the arguments of a call may have an initial state.

    Args:
      layer: a Keras layer.

    Returns:
      Whether it is a recurrent layer or a Bidirectional.
    """
    return _is_translated_by(layer, _recurrent, _bidirectional, _stacked)


def computes_with_masks(layer: Any) -> bool:
    """Whether a mask changes elements that a layer computes.

    Args:
      layer: a Keras layer.

    Returns:
      What its `Kind` says.
    """
    kind = _KINDS.get(_deviation.class_that_computes(type(layer)))
    return kind is not None and kind.computes_with_masks


def _is_translated_by(layer: Any, *functions: Translate) -> bool:
    kind = _KINDS.get(_deviation.class_that_computes(type(layer)))
    return kind is not None and kind.translate in functions


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
    kind = _kind_of(layer)
    if type(layer) is keras.layers.InputLayer:
        require_supported_input(layer, layer.output)
        return
    for dtype in (layer.compute_dtype, layer.variable_dtype):
        if dtype not in ("float32", None):
            raise unsupported(layer, f"it computes in or has weights of {dtype}, not float32")
    if kind.has_autocast and not layer.autocast:
        raise unsupported(layer, "it has autocast=False")
    if getattr(layer, "quantization_mode", None) is not None:
        raise unsupported(layer, f"its weights are quantized to {layer.quantization_mode}")
    if not layer.built and kind.translate is not _identity:
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
    if is_mask(tensor):
        return
    if tensor.dtype not in FLOATS and not tensor.dtype.startswith(("int", "uint")):
        raise unsupported(layer, f"its input has dtype {tensor.dtype}, not float32")


def is_mask(tensor: Any) -> bool:
    """Whether an input of a model is a mask.

    Args:
      tensor: the symbolic input.

    Returns:
      Whether it has booleans [B, T].
    """
    return tensor.dtype == "bool" and len(tensor.shape) == 2


def _kind_of(layer: Any) -> Kind:
    """How a layer is translated."""
    kind = _deviation.class_that_computes(type(layer))
    if kind in _KINDS:
        return _KINDS[kind]
    reason = (
        f"{class_names.public(kind)} is not a class that a session computes"
        f"{class_names.why_not_known(kind, _KINDS)}. help(tf_lstm_ops.inference.Session) lists "
        "the layers"
    )
    if kind is keras.layers.RNN:
        reason = (
            "it is keras.layers.RNN; tf_lstm_ops.keras.convert_model makes a layer that a session "
            "computes from RNN of LSTM, GRU or SimpleRNN cells"
        )
    raise unsupported(layer, reason)


# Recurrent layers, whose options `keras.options` reads.


def _recurrent(layer: Any, options: Reader) -> layers.Layer:
    options.ignore(options.values)
    return Recurrent([recurrent.single(layer)], layer.name, layer.return_state)


def _bidirectional(layer: Any, options: Reader) -> layers.Layer:
    parts = []
    for part in (layer.forward_layer, layer.backward_layer):
        if not _is_translated_by(part, _recurrent):
            refuse(f"its layer {part.name} is a {type(part).__name__}")
        require_supported(part)
        parts.append(recurrent.single(part))
    options.ignore(("layer", "backward_layer"))
    merge_mode = options.take("merge_mode", "concat")
    returns_state = bool(getattr(layer, "return_state", False))
    return merged(layer.name, parts[0], parts[1], merge_mode, returns_state)


def _stacked(layer: Any, options: Reader) -> layers.Layer:
    options.ignore(options.values)
    return Recurrent(recurrent.stacked(layer), layer.name, layer.return_state)


# Layers with weights.


def _optional(weight: Any) -> Any:
    return None if weight is None else array(weight)


def _dense(layer: Any, options: Reader) -> layers.Layer:
    activation = function(layer, options.take("activation"))
    return layers.Dense(array(layer.kernel), _optional(layer.bias), activation, layer.name)


def _embedding(layer: Any, options: Reader) -> layers.Layer:
    return layers.Embedding(array(layer.embeddings), options.take("mask_zero"), layer.name)


def _convolution(
    kind: Callable[..., layers.Layer], kernels: Sequence[str] = ("kernel",), **defaults: Any
) -> Translate:
    """Of a layer with windows: its kernels, and what not all such layers have."""

    def convolution(layer: Any, options: Reader) -> layers.Layer:
        names = ("strides", "padding", "dilation_rate")
        return kind(
            *(array(getattr(layer, kernel)) for kernel in kernels),
            bias=_optional(layer.bias),
            activation=function(layer, options.take("activation")),
            name=layer.name,
            **{name: options.take(name) for name in names},
            **{name: options.take(name, default) for name, default in defaults.items()},
        )

    return convolution


# Normalisation.


def _last_size(layer: Any, options: Reader) -> int:
    """The size of the last axis, along which the layer must normalise."""
    shape, given = layer.get_build_config()["input_shape"], options.take("axis")
    axis = given if isinstance(given, int) else [*given]
    if axis not in (-1, len(shape) - 1, [-1], [len(shape) - 1]):
        refuse(f"it normalizes axis {axis}, not the last one")
    return int(shape[-1])


def _batch_normalization(layer: Any, options: Reader) -> layers.Layer:
    _last_size(layer, options)
    return layers.BatchNormalization(
        gamma=_optional(layer.gamma),
        beta=_optional(layer.beta),
        mean=array(layer.moving_mean),
        variance=array(layer.moving_variance),
        epsilon=options.take("epsilon"),
        name=layer.name,
    )


def _layer_normalization(layer: Any, options: Reader) -> layers.Layer:
    require(not options.take("rms_scaling", False), "it has rms_scaling=True")
    weights = _optional(layer.gamma), _optional(layer.beta)
    arguments = _last_size(layer, options), *weights, options.take("epsilon"), layer.name
    return layers.LayerNormalization(*arguments)


def _rms_normalization(layer: Any, options: Reader) -> layers.Layer:
    arguments = _last_size(layer, options), _optional(layer.scale), options.take("epsilon")
    return layers.RMSNormalization(*arguments, layer.name)


def _group_normalization(layer: Any, options: Reader) -> layers.Layer:
    size, groups = _last_size(layer, options), options.take("groups")
    gamma, beta = (_optional(getattr(layer, name, None)) for name in ("gamma", "beta"))
    groups, epsilon = (size if groups == -1 else groups), options.take("epsilon")
    return layers.GroupNormalization(size, groups, gamma, beta, epsilon, layer.name)


# Layers without weights.


def _unit_normalization(layer: Any, options: Reader) -> layers.Layer:
    axes = options.take("axis")
    axes = [axes] if isinstance(axes, int) else [*axes]
    ranks = {len(args[0].shape) for args, _ in _keras_private.symbolic_calls(layer) if args}
    if axes != [-1] and {axis + 1 for axis in axes} != ranks:
        refuse(f"it normalizes axis {axes}, not the last one")
    # Keras bounds 1 / |x| by this number.
    return layers.UnitNormalization(None, keras.config.epsilon(), layer.name)


def _identity(layer: Any, options: Reader) -> layers.Layer:
    options.ignore(options.values)
    return layers.Identity(layer.name)


def _plain(kind: Callable[..., layers.Layer], *names: str) -> Translate:
    """A translation that passes arguments on."""
    return lambda layer, options: kind(*map(options.take, names), layer.name)


def _activation(layer: Any, options: Reader) -> layers.Layer:
    return activations.layer_of(layer, options.take("activation"))


def _prelu(layer: Any, options: Reader) -> layers.Layer:
    shared = sorted(options.take("shared_axes") or [])
    if shared != [*range(1, len(shared) + 1)]:
        refuse(f"it has shared_axes={shared}, not the first axes")
    return layers.PReLU(array(layer.alpha), layer.name)


def _softmax(layer: Any, options: Reader) -> layers.Layer:
    axis = options.take("axis")
    require(axis in (-1, [-1], (-1,)), f"it has axis={axis}, not -1")
    return layers.Softmax(layer.name)


def _time_distributed(layer: Any, options: Reader) -> layers.Layer:
    """Of the layer itself; `model` applies the one inside."""
    options.ignore(("layer",))
    return layers.Identity(layer.name)


_WINDOWS = ("pool_size", "strides", "padding")
# Of ``keras.layers``, whose versions do not all have every one.
_OF_KERAS: dict[str, Kind] = {
    **dict.fromkeys(("LSTM", "GRU", "SimpleRNN"), Kind(_recurrent)),
    "Bidirectional": Kind(_bidirectional),
    "TimeDistributed": Kind(_time_distributed),
    "Dense": Kind(_dense),
    "Embedding": Kind(_embedding, has_autocast=False),
    "Conv1D": Kind(_convolution(layers.Conv1D, groups=1)),
    "DepthwiseConv1D": Kind(_convolution(layers.DepthwiseConv1D)),
    "SeparableConv1D": Kind(
        _convolution(layers.SeparableConv1D, ("depthwise_kernel", "pointwise_kernel"))
    ),
    "BatchNormalization": Kind(_batch_normalization, has_autocast=False),
    "LayerNormalization": Kind(_layer_normalization, has_autocast=False),
    "RMSNormalization": Kind(_rms_normalization, has_autocast=False),
    "GroupNormalization": Kind(_group_normalization, has_autocast=False),
    "UnitNormalization": Kind(_unit_normalization),
    "MaxPooling1D": Kind(_plain(layers.MaxPooling1D, *_WINDOWS)),
    "AveragePooling1D": Kind(_plain(layers.AveragePooling1D, *_WINDOWS)),
    "GlobalMaxPooling1D": Kind(_plain(layers.GlobalMaxPooling1D, "keepdims")),
    "GlobalAveragePooling1D": Kind(_plain(layers.GlobalAveragePooling1D, "keepdims")),
    "Flatten": Kind(_plain(layers.Flatten)),
    "Reshape": Kind(_plain(layers.Reshape, "target_shape")),
    "Permute": Kind(_plain(layers.Permute, "dims")),
    "RepeatVector": Kind(_plain(layers.RepeatVector, "n")),
    "UpSampling1D": Kind(_plain(layers.UpSampling1D, "size")),
    "ZeroPadding1D": Kind(_plain(layers.ZeroPadding1D, "padding")),
    "Cropping1D": Kind(_plain(layers.Cropping1D, "cropping")),
    "Concatenate": Kind(_plain(layers.Concatenate, "axis")),
    "Add": Kind(_plain(layers.Add)),
    "Subtract": Kind(_plain(layers.Subtract)),
    "Multiply": Kind(_plain(layers.Multiply), computes_with_masks=True),
    "Average": Kind(_plain(layers.Average)),
    "Maximum": Kind(_plain(layers.Maximum), computes_with_masks=True),
    "Minimum": Kind(_plain(layers.Minimum), computes_with_masks=True),
    "Activation": Kind(_activation),
    "ReLU": Kind(_plain(layers.ReLU, "max_value", "negative_slope", "threshold")),
    "LeakyReLU": Kind(_plain(layers.LeakyReLU, "negative_slope")),
    "ELU": Kind(_plain(layers.ELU, "alpha")),
    "PReLU": Kind(_prelu),
    "Softmax": Kind(_softmax, computes_with_masks=True),
    "Masking": Kind(_plain(layers.Masking, "mask_value")),
    **dict.fromkeys(("InputLayer", "Dropout", "SpatialDropout1D"), Kind(_identity)),
    **dict.fromkeys(("GaussianDropout", "GaussianNoise", "AlphaDropout"), Kind(_identity)),
    **dict.fromkeys(("ActivityRegularization", "Identity"), Kind(_identity)),
}
_KINDS: dict[type, Kind] = {
    **{
        getattr(keras.layers, name): kind
        for name, kind in _OF_KERAS.items()
        if hasattr(keras.layers, name)
    },
    **dict.fromkeys((ours.LSTM, ours.GRU, ours.SimpleRNN), Kind(_recurrent)),
    **dict.fromkeys((LSTMOfCell, GRUOfCell, SimpleRNNOfCell), Kind(_recurrent)),
    ours.Bidirectional: Kind(_bidirectional),
    **dict.fromkeys((ours.StackedLSTM, ours.StackedGRU), Kind(_stacked)),
    SequenceMask: Kind(_plain(call_masks.MaskOfLengths), has_autocast=False),
}
