"""The stock layers that compute what a StackedLSTM or StackedGRU computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras

from tf_lstm_ops import _keras_private
from tf_lstm_ops.keras import user_objects
from tf_lstm_ops.keras.stacked import StackedGRU, StackedLSTM
from tf_lstm_ops.keras.stacked_rnn import StackedRNN

_CLASSES = {keras.saving.get_registered_name(cls): cls for cls in (StackedLSTM, StackedGRU)}
_STOCK = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}


def sequential(layer: StackedRNN) -> keras.Sequential | str:
    """The stock layers, in the order of the stack's weights.

    Args:
      layer: the stack.

    Returns:
      A ``keras.Sequential`` of the same name that is not built; or the reason why there is none.
    """
    if reason := _reason(layer):
        return reason
    parts: list[Any] = []
    for number in range(layer.num_layers):
        if number and layer.dropout:
            each_step = layer.dropout_per == "step"
            kind = keras.layers.Dropout if each_step else keras.layers.SpatialDropout1D
            parts.append(kind(layer.dropout, seed=layer.seed, dtype=layer.dtype_policy))
        parts.append(_one(layer, is_last=number == layer.num_layers - 1))
    return keras.Sequential(parts, name=layer.name, trainable=layer.trainable)


def _one(layer: StackedRNN, is_last: bool) -> Any:
    """One layer of one or two directions."""
    with user_objects.named():
        options = layer.cell.weight_options.serialised()
    if hasattr(layer, "unit_forget_bias"):
        options["unit_forget_bias"] = layer.unit_forget_bias
    stock = _STOCK[layer.cell.mode](
        layer.units,
        use_bias=layer.use_bias,
        return_sequences=layer.return_sequences or not is_last,
        go_backwards=layer.go_backwards,
        stateful=layer.stateful,
        zero_output_for_mask=is_last and layer.zero_output_for_mask,
        dtype=layer.dtype_policy,
        **options,
    )
    if not layer.bidirectional:
        return stock
    return keras.layers.Bidirectional(stock, dtype=layer.dtype_policy)


def _reason(layer: StackedRNN) -> str | None:
    several = layer.num_layers > 1
    reasons = {
        "stock layers have no projection_size": layer.projection_size is not None,
        "the states of several stock layers are not one result (return_state)": layer.return_state,
        "stock layers do not reverse the mask (go_backwards)": layer.go_backwards and several,
        "it has an activity_regularizer": layer.activity_regularizer is not None,
        "keras.layers.Bidirectional sets zero_output_for_mask to the value of return_sequences": (
            layer.bidirectional and layer.zero_output_for_mask != layer.return_sequences
        ),
        "stock layers of this version of Keras do not pass masks on": (
            several and not _STOCK["lstm"](1).supports_masking
        ),
        "the model gives its initial_state": _has_given_states(layer),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _has_given_states(layer: StackedRNN) -> bool:
    """Whether a functional model calls the layer with initial states."""
    calls = _keras_private.symbolic_calls(layer)
    return any(len(args) > 1 or given.get("initial_state") is not None for args, given in calls)


def replaced(config: Any) -> Any:
    """A model's configuration with stock layers in place of stacks.

    Args:
      config: the configuration, or a part of it. `sequential` has no reason against its stacks.

    Returns:
      The new configuration.
    """
    if isinstance(config, list | tuple):
        return type(config)(replaced(value) for value in config)
    if not isinstance(config, dict):
        return config
    cls = _CLASSES.get(config.get("registered_name"))
    if cls is not None:
        new = sequential(cls.from_config(config["config"]))
        with user_objects.named():
            return {**config, **keras.saving.serialize_keras_object(new)}
    return {key: replaced(value) for key, value in config.items()}


def copy_state(source: StackedRNN, target: keras.Sequential) -> None:
    """Copies weights and the states of a stateful stack.

    Args:
      source: the stack, built.
      target: the stock layers, built.
    """
    target.set_weights(source.get_weights())
    states = [state for layer in _recurrent(target) for state in layer.states or []]
    for variable, value in zip(states, source.states or [], strict=True):
        variable.assign(value)


def _recurrent(model: keras.Sequential) -> Iterator[Any]:
    """The stock layers of each direction, in the order layer * directions + direction."""
    for part in model.layers:
        if isinstance(part, keras.layers.Bidirectional):
            yield from (part.forward_layer, part.backward_layer)
        elif isinstance(part, keras.layers.RNN):
            yield part
