"""convert_model: replaces the stock LSTM and GRU layers of a model by ours."""

from __future__ import annotations

import inspect
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import keras

from tf_lstm_ops.keras.fused import FusedRNN
from tf_lstm_ops.keras.gru import GRU
from tf_lstm_ops.keras.lstm import LSTM
from tf_lstm_ops.keras.policy import default_dtype_policy
from tf_lstm_ops.keras.requirements import require_model

_LAYERS = {"LSTM": LSTM, "GRU": GRU}
_CELLS = {"LSTMCell": LSTM, "GRUCell": GRU}
_RNN = keras.layers.RNN


def convert_model(model: Any, custom_objects: dict[str, Any] | None = None) -> Any:
    """Copies a model and replaces its stock LSTM and GRU layers by layers that run the fused ops.

    ``keras.layers.LSTM`` and ``GRU``, and ``keras.layers.RNN`` of one ``LSTMCell`` or ``GRUCell``,
    become ``tf_lstm_ops.keras.LSTM`` and ``GRU``, also inside wrappers and nested models. Weights,
    their order, seeds, states of stateful layers, ``trainable``, and of a compiled model the loss,
    the metrics and the optimizer with its variables are copied: training continues where it was.
    The model itself does not change and shares nothing with the copy.

    A warning names the recurrent layers that are not replaced, each with the reason;
    ``fallback_reasons`` returns them. The copy is made from the model's configuration, as by
    ``keras.models.load_model``; rules: docs/reference/keras.md.

    Args:
      model: a ``keras.Model``: Sequential, functional, or with a ``get_config`` of its own.
      custom_objects: classes and functions by name, as for ``keras.models.load_model``; needed
        only for functions in the layers' arguments that Keras cannot find.

    Returns:
      The new model, of the same class.

    Raises:
      TypeError: model is not a ``keras.Model``; a model of tf_keras is not one.
      ValueError: the model, or a part of it, cannot be made from its configuration.
    """
    require_model(model)
    objects = {**_own_objects(model), **(custom_objects or {})}
    with keras.saving.custom_object_scope(objects), default_dtype_policy(model.dtype_policy):
        converted = _rebuild(model)
        _copy_state(model, converted)
        reasons = fallback_reasons(converted)
        if model.compiled:
            try:
                _copy_training(model, converted)
            except Exception as error:  # a loss or a metric of the user's may raise anything
                warnings.warn(
                    f"compile the converted model; its optimizer has no state: {error}",
                    stacklevel=2,
                )
    left_alone = [f"\n  {path}: {why}" for path, why in reasons.items() if why is not None]
    if left_alone:
        warnings.warn(
            f"convert_model did not replace these layers:{''.join(left_alone)}", stacklevel=2
        )
    return converted


def fallback_reasons(model: Any) -> dict[str, str | None]:
    """Returns, for each recurrent layer of a model, why it does not run a fused op.

    Bare cells of the model, which run one step per call, are included. The cell of a recurrent
    layer is part of that layer and has no item of its own.

    Args:
      model: a ``keras.Model``, or another ``keras.Layer``: a recurrent layer, or one that has
        recurrent layers, such as Bidirectional. There is no item for a cell given by itself.

    Returns:
      The reasons, None for a layer that runs a fused op. The keys are paths of names, such as
      ``"encoder/bidirectional/forward_lstm"``, in the model's order. They do not begin with the
      name of the model. The key of a recurrent layer that is given by itself is its name.

    Raises:
      TypeError: model is not a ``keras.Layer``; those of tf_keras are not.
    """
    require_model(model, keras.Layer)
    layers = [(model.name, model)] if isinstance(model, _RNN) else list(_recurrent_layers(model))
    # A model may have the cell of one of its layers as an attribute of its own, too.
    owned = {id(layer.cell) for _, layer in layers if isinstance(layer, _RNN)}
    with keras.saving.custom_object_scope(_own_objects(model)):
        return {path: _reason(layer) for path, layer in layers if id(layer) not in owned}


def _recurrent_layers(parent: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for layer in parent._flatten_layers(include_self=False, recursive=False):
        if isinstance(layer, _RNN | keras.layers.LSTMCell | keras.layers.GRUCell):
            yield path + layer.name, layer
        else:
            yield from _recurrent_layers(layer, f"{path}{layer.name}/")


def _reason(layer: Any) -> str | None:
    if isinstance(layer, FusedRNN):
        return layer.fallback_reason
    cls = type(layer.cell if type(layer) is keras.layers.RNN else layer)
    if cls.__name__ not in {**_LAYERS, **_CELLS}:
        return f"{cls.__name__} has no fused op"
    fused = _fused(keras.saving.serialize_keras_object(layer))
    if isinstance(fused, str):
        return fused
    name = type(layer).__name__
    return f"it is keras.layers.{name}; convert_model replaces it unless another class creates it"


def _fused(serialised: dict[str, Any]) -> FusedRNN | str:
    """Our layer, not built, that replaces a serialised layer; or the reason why there is none."""
    config, name, layers = serialised["config"], serialised["class_name"], _LAYERS
    if name == "RNN" and serialised["module"] == "keras.layers":
        layers, serialised = _CELLS, config["cell"]
        name = serialised["class_name"]
        config = {**serialised["config"], **{k: v for k, v in config.items() if k != "cell"}}
    if name not in layers or serialised["module"] != "keras.layers":
        return f"{name} has no fused op"
    for key in "dtype", "trainable":  # a layer of ours passes these on to its cell
        if serialised["config"][key] != config[key]:
            return f"its {name} has another {key}"
    layer = _deserialise(layers[name], config)
    return layer.fallback_reason or layer


def _with_fused_layers(config: Any, pass_masks: bool) -> Any:
    """A configuration in which our layers replace the stock ones.

    Whether the new layers give the next one their mask is part of it: the call of the next layer,
    which Keras repeats when it makes a functional model, depends on it.
    """
    if isinstance(config, list | tuple):
        return type(config)(_with_fused_layers(value, pass_masks) for value in config)
    if not isinstance(config, dict):
        return config
    if config.get("module") == "keras.layers" and config["class_name"] in {*_LAYERS, "RNN"}:
        layer = _fused(config)
        if not isinstance(layer, str):
            layer._passes_masks = pass_masks
            # The other entries describe where the layer is called. They do not change.
            config = {**config, **keras.saving.serialize_keras_object(layer)}
    # Layers that are built where they are called get the same paths as before. The compile
    # configuration of a nested model has no effect on the training of the outer one.
    dropped = "build_config", "compile_config"
    kept = {k: value for k, value in config.items() if k not in dropped}
    return {k: _with_fused_layers(value, pass_masks) for k, value in kept.items()}


def _deserialise(cls: type, config: dict[str, Any]) -> Any:
    serialised = {
        "module": cls.__module__,
        "class_name": cls.__name__,
        "config": config,
        "registered_name": keras.saving.get_registered_name(cls),
    }
    # The code of a lambda comes from the model itself, not from a file.
    return keras.saving.deserialize_keras_object(serialised, safe_mode=False)


def _rebuild(model: Any) -> Any:
    stock = [
        layer
        for layer in model._flatten_layers()
        if isinstance(layer, _RNN) and not isinstance(layer, FusedRNN)
    ]
    pass_masks = all(layer.supports_masking for layer in stock)  # not in Keras 3.16
    try:
        converted = _deserialise(type(model), _with_fused_layers(model.get_config(), pass_masks))
        if model.built and not converted.built:
            converted.build_from_config(model.get_build_config())
    except Exception as error:  # a class of the user's may raise anything
        raise ValueError(
            f"convert_model cannot make {model.name} from its configuration, as Keras does when it "
            "loads a model. In a class of your own write tf_lstm_ops.keras.LSTM instead of "
            f"keras.layers.LSTM. {error}"
        ) from error
    return converted


def _own_objects(model: Any) -> dict[str, Any]:
    """The classes and functions of a model by the names that Keras looks up, registered or not."""
    objects = model._flatten_layers()
    objects += [getattr(layer, "activation", None) for layer in objects]
    if hasattr(model, "_compile_config"):
        objects += keras.tree.flatten(model._compile_config.config)
    found = [item if inspect.isfunction(item) else type(item) for item in objects]
    return {
        keras.saving.get_registered_name(item): item
        for item in found
        if item.__module__ != "builtins"
    }


def _copy_state(model: Any, converted: Any) -> None:
    sources, targets = (m._flatten_layers() for m in (model, converted))
    shapes = [[v.shape for v in m.variables] for m in (model, converted)]
    if len(sources) != len(targets) or shapes[0] != shapes[1]:
        raise ValueError(
            f"the configuration of {model.name} does not describe the whole model: made from it, a "
            f"model has {len(targets)} layers and {len(shapes[1])} variables, not {len(sources)} "
            f"and {len(shapes[0])}, or other shapes. Does a class lack get_config or "
            "get_build_config, or do nested models share a layer?"
        )
    for source, target in zip(sources, targets, strict=True):
        _copy_layer(source, target)
    _assign(converted.variables, model.variables)  # also those of the seeds


def _copy_layer(source: Any, target: Any) -> None:
    """Copies the layer's own state by the methods with which Keras saves and loads it."""
    target.trainable = source.trainable
    variables: dict[str, Any] = {}
    source.save_own_variables(variables)
    target.load_own_variables(variables)
    if hasattr(source, "save_assets"):
        with tempfile.TemporaryDirectory() as folder:
            source.save_assets(folder)
            target.load_assets(folder)
    if isinstance(source, keras.layers.RNN) and source.states is not None:
        _assign(keras.tree.flatten(target.states), keras.tree.flatten(source.states))


def _copy_training(model: Any, converted: Any) -> None:
    config = model.get_compile_config()
    if type(model).compile is keras.Model.compile:
        converted.compile(**keras.saving.deserialize_keras_object(config, safe_mode=False))
    else:
        converted.compile_from_config(config)
        if not converted.compiled:
            raise ValueError("its class overrides compile but not compile_from_config")
    if model.optimizer.built:
        converted.optimizer.build(converted.trainable_variables)
        _assign(converted.optimizer.variables, model.optimizer.variables)


def _assign(targets: Any, sources: Any) -> None:
    for target, source in zip(targets, sources, strict=True):
        target.assign(source)
