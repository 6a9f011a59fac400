"""Makes layers of Keras 3 from their configurations in files of Keras 1 and 2."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import keras

from tf_lstm_ops._activations import DEFAULTS
from tf_lstm_ops._refusal import Refused, naming, refuse, refused
from tf_lstm_ops.files.contents import Contents, NamedArray
from tf_lstm_ops.keras.old_files import arguments, keras_1, safety
from tf_lstm_ops.keras.old_files.masks import Masks

_CUDNN = {"CuDNNLSTM": "LSTM", "CuDNNGRU": "GRU"}
_CUDNN_ARGUMENTS = {
    "LSTM": {**DEFAULTS, "use_bias": True},
    "GRU": {**DEFAULTS, "use_bias": True, "reset_after": True},
}
MODELS = ("Sequential", "Model", "Functional")
# Classes that are Python code, or that Keras 3 has no counterpart of, and what they are.
_NOT_REBUILT = {
    "TFOpLambda": "it is a call of a function of TensorFlow in the model's graph",
    "SlicingOpLambda": "it is a slice of a tensor in the model's graph",
    "TensorFlowOpLayer": "it is an op of TensorFlow in the model's graph",
}
_INSTEAD = (
    "The weights of the recurrent layers can still be read: tf_lstm_ops.weights.LSTMWeights and "
    "GRUWeights have from_checkpoint(path, layer=...); or make the model in Python and call "
    "tf_lstm_ops.keras.load_h5_weights(model, path)"
)


class Source(NamedTuple):
    """Where a layer comes from.

    Attributes:
      file: the file.
      custom_objects: the user's classes and functions by name.
      arrays: the arrays of the layer of the model that has this one.
      masks: calls the layers.
      model_of: makes a model that is inside a layer, of its configuration and the source.
    """

    file: Contents
    custom_objects: Mapping[str, Any]
    arrays: list[NamedArray]
    masks: Masks
    model_of: Callable[[Any, Any], Any]


def making(name: str, kind: str) -> contextlib.AbstractContextManager[None]:
    """A context whose errors name a layer that cannot be made, and say what still works.

    Args:
      name: the layer's name.
      kind: the name of its class.

    Returns:
      The context.
    """
    kinds = (AttributeError, KeyError, TypeError, ValueError)
    return naming(_where(name, kind), _INSTEAD, kinds=kinds)


def not_made(name: str, kind: str, reason: str) -> Refused:
    """The error for a layer that cannot be made.

    Args:
      name, kind: as of `making`.
      reason: why.

    Returns:
      The error.
    """
    return refused(reason, _where(name, kind), _INSTEAD)


def _where(name: str, kind: str) -> str:
    return f"layer {name} ({kind}) cannot be made in Keras {keras.__version__}"


def layer_of(data: Any, source: Source) -> Any:
    """Makes a layer or a cell.

    Args:
      data: the configuration, with class_name and config.
      source: where it comes from.

    Returns:
      The layer, not built.

    Raises:
      ValueError: the layer cannot be made; the message names it.
    """
    kind, config = class_and_config(data)
    name = str(config.get("name", kind))
    with making(name, kind):
        if kind in _NOT_REBUILT and _class_of_user(kind, source) is None:
            refuse(_NOT_REBUILT[kind])
        return _made(kind, config, source)


def class_and_config(data: Any) -> tuple[str, dict[str, Any]]:
    """The parts of a configuration of a layer.

    Args:
      data: the configuration.

    Returns:
      The name of the class, also "package>name" of a registered one, and a copy of its
      configuration.

    Raises:
      ValueError: it is no configuration.
    """
    parts = (data.get("class_name"), data.get("config")) if isinstance(data, dict) else (None, None)
    if not isinstance(parts[0], str) or not isinstance(parts[1], dict):
        raise ValueError(f"the model_config of the file has no layer where it has {str(data)[:80]}")
    return parts[0], dict(parts[1])


def renamed(name: str) -> str:
    """The name in Keras 3 of a layer.

    Args:
      name: its name in the file.

    Returns:
      The name without the separator of paths.
    """
    return name.replace("/", "_")


def _made(kind: str, config: dict[str, Any], source: Source) -> Any:
    if (own := _class_of_user(kind, source)) is not None:
        return _made_by_user(own, config, source)
    if kind == "TimeDistributedDense":
        wrapper = {"class_name": "Dense", "config": {**config, "name": f"{config['name']}_dense"}}
        kind, config = "TimeDistributed", {"name": config["name"], "layer": wrapper}
    if keras_1.is_of_keras_1(kind, config):
        kind, config = keras_1.renamed(kind, config)
    if kind in _CUDNN:
        kind = _CUDNN[kind]
        config |= _CUDNN_ARGUMENTS[kind]
    cls = safety.layer_class(kind)
    if cls is None:
        raise ValueError(
            f"Keras {keras.__version__} has no such layer. If it is a class of your own, pass "
            f"custom_objects={{{kind!r}: your_class}}"
        )
    if kind in ("GRU", "GRUCell"):
        config["reset_after"] = _resets_after(config, source)
    if kind in ("LSTM", "LSTMCell", "GRU", "GRUCell") and "recurrent_activation" not in config:
        raise ValueError("the file does not say its recurrent_activation")
    nested = {key: _nested(config.pop(key), source) for key in arguments.NESTED if config.get(key)}
    if "name" in config:
        config["name"] = renamed(str(config["name"]))
    return cls(**arguments.adapted(cls, kind, config), **nested)


def _made_by_user(own: Any, config: dict[str, Any], source: Source) -> Any:
    """A layer of the user's class. A class derived from one of Keras gets arguments of Keras 3."""
    bases = own.__mro__ if isinstance(own, type) else ()
    base = next((b for b in bases if b is safety.layer_class(b.__name__)), None)
    if base is None:
        return own.from_config(config)
    if issubclass(base, keras.layers.GRU | keras.layers.GRUCell):
        config["reset_after"] = _resets_after(config, source)
    return own.from_config(arguments.adapted_for_user(own, base, config))


def _class_of_user(kind: str, source: Source) -> Any:
    """The class that the user gave or registered; None if there is none."""
    if (bare := kind.rpartition(">")[2]) in source.custom_objects:
        return source.custom_objects[bare]
    names = (kind, f"Custom>{kind}")  # Keras' package of classes that were registered without one
    return next(filter(None, map(keras.saving.get_registered_object, names)), None)


def _nested(data: Any, source: Source) -> Any:
    if isinstance(data, list):
        return [_nested(each, source) for each in data]
    return source.model_of(data, source) if is_model(data, source) else layer_of(data, source)


def is_model(data: Any, source: Source) -> bool:
    """Whether a configuration is that of a model.

    Args:
      data: the configuration, with class_name and config.
      source: where it comes from.

    Returns:
      True for the models of Keras, and those of other classes with a graph.
    """
    kind = data.get("class_name") if isinstance(data, dict) else None
    config = data.get("config") if isinstance(data, dict) else None
    has_graph = isinstance(config, dict) and "input_layers" in config
    return kind in MODELS or (has_graph and _class_of_user(str(kind), source) is None)


def _resets_after(config: dict[str, Any], source: Source) -> bool:
    """reset_after of a GRU. Keras before 2.2 did not have it: it was False."""
    if config.get("reset_after") is not None:
        return bool(config["reset_after"])
    sizes = ((2, 3 * config["units"]), (6 * config["units"],))
    biases = [array for array in source.arrays if "bias" in array.name.rpartition("/")[2]]
    return any(array.value.shape in sizes for array in biases)
