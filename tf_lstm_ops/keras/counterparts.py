"""The layer of ours for a stock layer and vice versa; a layer becomes its counterpart in place."""

from __future__ import annotations

from typing import Any

import keras

from tf_lstm_ops import _deviation
from tf_lstm_ops._targets import STOCK, Effect
from tf_lstm_ops.keras import class_names, options, ours_stack, user_objects
from tf_lstm_ops.keras.fused import PACKAGE, FusedRNN
from tf_lstm_ops.keras.gru import GRU
from tf_lstm_ops.keras.gru_cell import GRUCell
from tf_lstm_ops.keras.lstm import LSTM
from tf_lstm_ops.keras.lstm_cell import LSTMCell
from tf_lstm_ops.keras.of_cell import GRUOfCell, LSTMOfCell, SimpleRNNOfCell
from tf_lstm_ops.keras.simple_rnn import SimpleRNN

_OURS: dict[type, type] = {
    keras.layers.LSTM: LSTM,
    keras.layers.GRU: GRU,
    keras.layers.SimpleRNN: SimpleRNN,
}
_OURS_OF_CELL: dict[type, type] = {
    keras.layers.LSTMCell: LSTMOfCell,
    LSTMCell: LSTMOfCell,
    keras.layers.GRUCell: GRUOfCell,
    GRUCell: GRUOfCell,
    keras.layers.SimpleRNNCell: SimpleRNNOfCell,
}
_STOCK: dict[type, type] = {
    LSTM: keras.layers.LSTM,
    GRU: keras.layers.GRU,
    LSTMCell: keras.layers.LSTMCell,
    GRUCell: keras.layers.GRUCell,
    SimpleRNN: keras.layers.SimpleRNN,
    keras.layers.SimpleRNNCell: keras.layers.SimpleRNNCell,  # there is none of ours
}


def is_ours(layer: keras.Layer) -> bool:
    """Whether a layer needs this package.

    Args:
      layer: a layer.

    Returns:
      True if its class, or a base of it, is of this package.
    """
    return any(map(_is_of_package, type(layer).__mro__))


def _is_of_package(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == PACKAGE


def ours(layer: keras.Layer) -> FusedRNN | str:
    """The layer of ours that computes what a stock layer does.

    Args:
      layer: a layer or cell of Keras, or of a class of the user's.

    Returns:
      A layer of ours that is not built; or the reason why there is none that runs a fused op.
    """
    new = equivalent(layer)
    return new if isinstance(new, str) else new.fallback_reason or new


def equivalent(layer: keras.Layer) -> FusedRNN | str:
    """The layer of ours with the options of a stock layer, whether it runs a fused op or not.

    Args:
      layer: as of `ours`.

    Returns:
      A layer of ours that is not built; or the reason why there is none.
    """
    if reason := _deviation.of(layer):
        return reason
    if ours_stack.is_of_cells(layer):
        if isinstance(stack := ours_stack.of(layer), str):
            return stack
        name = f"tf_lstm_ops.keras.{type(stack).__name__}"
        return f"convert_model makes a {name} of it in a copy, if the model's configuration has it"
    cls, config = _OURS.get(_deviation.class_that_computes(type(layer))), config_of(layer)
    if type(layer) is keras.layers.RNN:
        cls, cell = _OURS_OF_CELL.get(type(layer.cell)), config_of(layer.cell)
        if cls is None:
            why = class_names.why_not_known(type(layer.cell), _OURS_OF_CELL)
            return f"{type(layer.cell).__name__} has no fused op{why}"
        if "activity_regularizer" in cell:
            return f"its {type(layer.cell).__name__} has an activity_regularizer"
        for key in "dtype", "trainable":  # a layer of ours passes these on to its cell
            if cell[key] != config[key]:
                return f"its {type(layer.cell).__name__} has another {key}"
        config = {**cell, **{k: v for k, v in config.items() if k != "cell"}}
    if cls is None:
        why = class_names.why_not_known(type(layer), _OURS)
        return f"{type(layer).__name__} has no fused op{why}"
    new = deserialise(cls, config)
    if not layer.supports_masking:  # stock layers of Keras 3.16
        new._pass_no_masks()
    return new


def stock(layer: keras.Layer) -> Any:
    """The stock layer that computes what a layer or cell of ours does.

    Args:
      layer: a layer or cell for which `is_ours` holds.

    Returns:
      A layer or cell of ``keras.layers`` that is not built; or a str, the reason why there is none.
    """
    if reason := _deviation.of(layer):
        return reason
    if type(layer) in (LSTMOfCell, GRUOfCell, SimpleRNNOfCell):
        return _stock_rnn(layer)
    cls = _STOCK.get(_deviation.class_that_computes(type(layer)))
    if cls is None:
        base = next(c for c in type(layer).__mro__ if _is_of_package(c))
        name = f"tf_lstm_ops.keras.{base.__name__}"
        if base is type(layer):
            return f"keras.layers has no counterpart of {name}"
        return f"{type(layer).__name__} is a subclass of {name}"
    if reason := options.why_not(layer, STOCK, tuple(Effect), f"keras.layers.{cls.__name__} has"):
        return reason
    config, common = config_of(layer), cls(1).get_config().keys()
    new = deserialise(cls, {k: v for k, v in config.items() if k in common})
    new.supports_masking = layer.supports_masking
    return new


def _stock_rnn(layer: keras.Layer) -> Any:
    """``keras.layers.RNN`` of the stock cell; or a str, the reason why there is none."""
    if reason := options.why_not(layer, STOCK, (Effect.START,), "keras.layers.RNN has"):
        return reason
    cell = stock(layer.cell)
    if isinstance(cell, str):
        return cell
    names = {*keras.layers.RNN(cell).get_config(), "activity_regularizer"} - {"cell"}
    new = keras.layers.RNN(cell, **{k: v for k, v in config_of(layer).items() if k in names})
    new.supports_masking = layer.supports_masking
    return new


def config_of(layer: keras.Layer) -> Any:
    """A layer's configuration, from which `deserialise` makes the layer again.

    Args:
      layer: a layer or a model.

    Returns:
      The configuration, as of `class_that_computes`. Within `user_objects.known` of the layer, or
      of a model that has it, a copy shares the functions of the layer.
    """
    kind: Any = _deviation.class_that_computes(type(layer))
    with user_objects.named():
        return layer.get_config() if kind is type(layer) else kind.get_config(layer)


def deserialise(kind: type, config: dict[str, Any]) -> Any:
    """Makes a Keras object from its configuration.

    Args:
      kind: its class.
      config: what its ``get_config`` or `config_of` returned.

    Returns:
      The object. Layers in it are not built, unless making it calls them, and not compiled.
    """
    serialised = _layers_only(
        {
            "module": kind.__module__,
            "class_name": kind.__name__,
            "config": config,
            "registered_name": keras.saving.get_registered_name(kind),
        }
    )
    # The code of a lambda comes from the model itself, not from a file.
    return keras.saving.deserialize_keras_object(serialised, safe_mode=False)


def _layers_only(config: Any) -> Any:
    """A configuration without what depends on where a layer is called or how it is compiled.

    Its classes have the names of `user_objects.registered_name`.
    """
    if isinstance(config, list | tuple):
        return type(config)(_layers_only(value) for value in config)
    if not isinstance(config, dict):
        return config
    # Layers that are built where they are called get the same paths as before. The compile
    # configuration of a nested model has no effect on the training of the outer one.
    dropped = "build_config", "compile_config"
    kept = {k: _layers_only(value) for k, value in config.items() if k not in dropped}
    if {"module", "class_name", "registered_name"} <= config.keys():
        names = (config[k] for k in ("module", "class_name", "registered_name"))
        kept["registered_name"] = user_objects.registered_name(*names)
    return kept
