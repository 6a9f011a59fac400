"""The arguments of layers in files of Keras 1 and 2, as Keras 3 takes them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _keras_private
from tf_lstm_ops.keras.old_files import safety
from tf_lstm_ops.weights import keras_2


@keras.saving.register_keras_serializable(__name__.partition(".")[0])
def keras_2_hard_sigmoid(x: Any) -> Any:
    """The function that Keras 1 and 2 call "hard_sigmoid". Keras 3's is clip(x / 6 + 0.5, 0, 1).

    >>> from tf_lstm_ops.keras import GRU, keras_2_hard_sigmoid
    >>> GRU(4, recurrent_activation=keras_2_hard_sigmoid).uses_fused_op
    False

    Args:
      x: a tensor of floating-point numbers.

    Returns:
      clip(0.2 x + 0.5, 0, 1), of the same shape and dtype.
    """
    x = tf.convert_to_tensor(x)
    return tf.clip_by_value(0.2 * x + 0.5, 0, 1)


HARD_SIGMOID_DIFFERS = (
    "hard_sigmoid is clip(x / 6 + 0.5, 0, 1) in Keras 3, and was clip(0.2 x + 0.5, 0, 1) in Keras 2"
)


_IS_CHECKED = "_tf_lstm_ops_hard_sigmoid_is_of_keras_3"  # an attribute of layers


def mark_hard_sigmoid(model: Any) -> None:
    """Notes that a model computes as it should with Keras 3's hard_sigmoid.

    Args:
      model: a model or layer whose weights `load_h5` or `load_h5_weights` has set.
    """
    for layer in _keras_private.layers_of(model):
        object.__setattr__(layer, _IS_CHECKED, True)  # Keras would track the attribute


def may_be_hard_sigmoid_of_keras_2(layer: Any) -> bool:
    """Whether a layer has Keras 3's hard_sigmoid, and nothing is known of its weights.

    Args:
      layer: a layer of any class.

    Returns:
      True if it is an activation of the layer, unless `mark_hard_sigmoid` had the layer.
    """
    if getattr(layer, _IS_CHECKED, False):
        return False
    part = keras_2.cell_of(layer)
    functions = (getattr(part, name, None) for name in ("activation", "recurrent_activation"))
    return any(function is keras.activations.hard_sigmoid for function in functions)


# Layers whose weights are scaled instead, so that exports and sessions know the function. Their
# activation is a function of one sum of products with weights.
LINEAR = ("Dense", "Conv1D", "Conv2D", "Conv3D", "SimpleRNN", "SimpleRNNCell")

# Arguments that are layers or cells, or lists of them.
NESTED = ("layer", "backward_layer", "forward_layer", "cell", "cells")
# The arguments that all layers take.
_OF_ALL = ("name", "trainable", "dtype", "activity_regularizer")
# Those that recurrent layers pass on to RNN.
_OF_RNN = ("zero_output_for_mask",)


# How the names of arguments end that are objects.
_OBJECTS = ("initializer", "regularizer", "constraint")


def _anything(value: Any) -> bool:
    return True


def _is_default_format(value: Any) -> bool:
    return value in (None, "channels_last")


# Arguments that Keras 3 lacks, and whether a value asks for nothing that it would not do.
_DROPPED: dict[str, Callable[[Any], bool]] = {
    "time_major": lambda value: not value,
    "implementation": _anything,  # how the matrices are multiplied
    "unroll": _anything,  # where a layer, such as ConvLSTM2D, has it no more
    "batch_input_shape": _anything,  # this and the next five: read by the model
    "batch_shape": _anything,
    "input_shape": _anything,
    "input_dim": _anything,
    "input_length": _anything,
    "input_dtype": _anything,
    "fused": _anything,  # how a batch is normalised
    "autocast": lambda value: value in (None, True),
    "renorm": lambda value: not value,
    "renorm_clipping": lambda value: value is None,
    "renorm_momentum": _anything,  # of renorm
    "virtual_batch_size": lambda value: value is None,
    "adjustment": lambda value: value is None,
    "ragged": lambda value: not value,
    "sparse": lambda value: not value,
    "groups": lambda value: value == 1,
    "data_format": _is_default_format,
    "dim_ordering": lambda value: value in (None, "tf", "default"),
    "dilation_rate": lambda value: value in (1, [1], [1, 1], [1, 1, 1], (1,), (1, 1)),
    "query_shape": _anything,  # shapes of MultiHeadAttention, known from its inputs
    "key_shape": _anything,
    "value_shape": _anything,
    "dynamic": lambda value: not value,
    "supports_masking": _anything,  # of the class
    "return_runtime": lambda value: not value,
    "softmax_robust_masking": lambda value: not value,
    "num_constants": lambda value: not value,
    "reverse_state_order": lambda value: not value,
    "causal": lambda value: not value,  # of Attention before TensorFlow 2.10
    "weights": lambda value: value is None,
    "rng_type": _anything,  # of layers that are random in training
    "vocabulary_size": _anything,  # of the vocabulary
}


def is_of_keras_2(config: dict[str, Any]) -> bool:
    """Whether Keras 2 wrote the configuration of a layer with a kernel for h.

    Args:
      config: the configuration.

    Returns:
      True if it has an argument that all these layers of Keras 2 have, and none of Keras 3.
    """
    return "implementation" in config


def of_single_layer(layer_class: Any, config: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a layer that gets the weights of the file as they are.

    Args:
      layer_class: the class in Keras 3.
      config: the configuration in a file of Keras 2.

    Returns:
      The arguments. A "hard_sigmoid" is `keras_2_hard_sigmoid`, and reset_after is False where
      Keras did not have it yet.

    Raises:
      ValueError: as of `adapted`.
    """
    found = adapted(layer_class, layer_class.__name__, config)
    for key in ("activation", "recurrent_activation"):
        if found.get(key) == "hard_sigmoid":
            found[key] = keras_2_hard_sigmoid
    if "reset_after" in inspect.signature(layer_class.__init__).parameters:
        found.setdefault("reset_after", False)
    return found


def adapted(layer_class: Any, name: str, config: dict[str, Any]) -> dict[str, Any]:
    """The arguments for the constructor of a layer of Keras 3.

    Args:
      layer_class: the class in Keras 3.
      name: the name of the class in the file.
      config: the configuration in the file, in Keras 2's names, without nested layers.

    Returns:
      The arguments.

    Raises:
      ValueError: an argument has no counterpart, or its value has none.
    """
    parameters = _parameters(layer_class)
    is_recurrent = "recurrent_initializer" in parameters or layer_class is keras.layers.RNN
    known = {*parameters, *_OF_ALL, *(_OF_RNN if is_recurrent else ())} - {"self", "kwargs"}
    if "kwargs" not in parameters:  # such as SpatialDropout1D
        known -= set(_OF_ALL) - set(parameters)
    found: dict[str, Any] = {}
    for key, value in _fixed(layer_class, config).items():
        if key in known:
            found[key] = _value(layer_class, key, value)
        elif not (value is None or key in _OF_ALL or _is_without_effect(key, value)):
            raise ValueError(f"it has {key}={value!r}, which {name} of Keras 3 does not have")
    if found.get("activity_regularizer", ...) is None:
        del found["activity_regularizer"]
    return found


def _parameters(cls: Any) -> dict[str, inspect.Parameter]:
    """The arguments of a class. One of the user's passes **kwargs on to the next class."""
    found: dict[str, inspect.Parameter] = {}
    for base in cls.__mro__:
        found = {**inspect.signature(base.__init__).parameters, **found}
        if base.__module__.partition(".")[0] in ("keras", "tf_lstm_ops") or "kwargs" not in found:
            return found
    return found


def adapted_for_user(own: Any, base: Any, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration for a class that is derived from a layer of Keras.

    Args:
      own: the class.
      base: the layer of Keras 3.
      config: the configuration in the file.

    Returns:
      The configuration, with the arguments of Keras as Keras 3 has them, and those of the class as
      they are; without arguments that neither has and that have no effect.

    Raises:
      ValueError: as of `adapted`.
    """
    of_base = _parameters(base)
    of_own = _parameters(own)
    found: dict[str, Any] = {}
    for key, value in _fixed(base, config).items():
        if key in NESTED:
            found[key] = config[key]
        elif key in of_base or key in _OF_ALL:
            found[key] = _value(base, key, value)
        elif key in of_own or not _is_without_effect(key, value):
            found[key] = config[key]
    return found


def _is_without_effect(key: str, value: Any) -> bool:
    return key.endswith("initializer") or (key in _DROPPED and _DROPPED[key](value))


def _fixed(cls: type, config: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the arguments that have another name or form in Keras 3."""
    found = {key: _decoded(value) for key, value in config.items()}
    if "dtype" in found:
        found["dtype"] = _dtype(found["dtype"])
    if cls is keras.layers.BatchNormalization and isinstance(found.get("axis"), list):
        if len(found["axis"]) != 1:
            raise ValueError(f"it normalises along several axes, {found['axis']}")
        found["axis"] = found["axis"][0]
    if cls is keras.layers.LeakyReLU and "alpha" in found:
        found["negative_slope"] = found.pop("alpha")
    return found


def _decoded(value: Any) -> Any:
    """Values that are no JSON: arrays and tuples."""
    if isinstance(value, dict):
        if value.get("type") == "ndarray":
            return value.get("value")
        if value.get("class_name") == "__tuple__":
            return tuple(map(_decoded, value["items"]))
        return {key: _decoded(each) for key, each in value.items()}
    return [_decoded(each) for each in value] if isinstance(value, list) else value


def _dtype(value: Any) -> Any:
    """The dtype of the layer's weights. In Keras 2 it could be that of the input, of integers."""
    if isinstance(value, dict):
        value = value.get("config", {}).get("name")
    if not isinstance(value, str) or not keras.backend.is_float_dtype(value.split("_")[-1]):
        return None
    return value


def _value(cls: type, key: str, value: Any) -> Any:
    if key in ("activation", "recurrent_activation"):
        return _activation(cls, key, value)
    if isinstance(value, dict):
        return _object(key, value)
    parameter = _parameters(cls).get(key)
    is_number = type(value) in (int, float)
    if parameter is not None and isinstance(parameter.default, bool) and is_number:
        raise ValueError(f"its {key} is {value}, not true or false")
    return value


def _activation(cls: type, key: str, value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("config"), str):  # a function
        value = value["config"]
    elif isinstance(value, dict):
        return _layer(key, value)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"its {key} is Python code, which is not run")
    is_scaled = key == "recurrent_activation" or cls.__name__ in LINEAR
    if value == "hard_sigmoid" and not is_scaled:
        return keras_2_hard_sigmoid
    return value


def _layer(key: str, value: dict[str, Any]) -> Any:
    """An activation that is a layer, such as LeakyReLU."""
    kind, config = value.get("class_name"), value.get("config")
    layer_class = safety.layer_class(str(kind))
    if layer_class is None or not isinstance(config, dict):
        raise ValueError(f"its {key} is {str(value)[:80]}, which load_h5 does not make")
    return layer_class(**adapted(layer_class, str(kind), config))


def _object(key: str, value: dict[str, Any]) -> dict[str, Any]:
    """An initializer, a regularizer or a constraint, which Keras finds by the name of its class."""
    kind, given = value.get("class_name"), value.get("config") or {}
    if not key.endswith(_OBJECTS) or not isinstance(kind, str) or not isinstance(given, dict):
        raise ValueError(f"it has {key}={str(value)[:80]}, which load_h5 does not make")
    if any(isinstance(each, dict) for each in given.values()):
        raise ValueError(f"its {key} consists of other objects, which load_h5 does not make")
    config = {k: v for k, v in given.items() if k != "dtype"}
    if config.get("distribution") == "normal":
        config["distribution"] = "truncated_normal"
    return {"class_name": kind, "config": config}
