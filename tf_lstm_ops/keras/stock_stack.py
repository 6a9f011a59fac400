"""The stock layers that compute what a StackedLSTM or StackedGRU computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import keras

from tf_lstm_ops import _keras_private
from tf_lstm_ops._targets import STOCK
from tf_lstm_ops.keras import model_layers, options, user_objects
from tf_lstm_ops.keras.stacked import StackedGRU, StackedLSTM
from tf_lstm_ops.keras.stacked_rnn import StackedRNN

_CLASSES = {keras.saving.get_registered_name(cls): cls for cls in (StackedLSTM, StackedGRU)}
_STOCK = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}


def _sequential(layer: StackedRNN) -> keras.Sequential:
    """The stock layers, in the order of the stack's weights. They are not built."""
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
        given = layer.cell.weight_options.serialised()
    if hasattr(layer, "unit_forget_bias"):
        given["unit_forget_bias"] = layer.unit_forget_bias
    stock = _STOCK[layer.cell.mode](
        layer.units,
        use_bias=layer.use_bias,
        return_sequences=layer.return_sequences or not is_last,
        go_backwards=layer.go_backwards,
        stateful=layer.stateful,
        zero_output_for_mask=is_last and layer.zero_output_for_mask,
        dtype=layer.dtype_policy,
        **given,
    )
    if not layer.bidirectional:
        return stock
    return keras.layers.Bidirectional(stock, dtype=layer.dtype_policy)


def reason(layer: StackedRNN, parents: tuple[Any, ...]) -> str | None:
    """Why stock layers do not compute what a stack of a model does.

    Args:
      layer: the stack.
      parents: the layers around it, the model first.

    Returns:
      The reason; None if stock layers compute the same.
    """
    several = layer.num_layers > 1
    passes_masks = several or (layer.return_sequences and layer.supports_masking)
    if why := options.why_not(layer, STOCK, name="stock layers have"):
        return why
    reasons = {
        "the states of several stock layers are not one result (return_state)": layer.return_state,
        "stock layers do not reverse the mask (go_backwards)": layer.go_backwards and several,
        "it has an activity_regularizer": layer.activity_regularizer is not None,
        "keras.layers.Bidirectional sets zero_output_for_mask to the value of return_sequences": (
            layer.bidirectional and layer.zero_output_for_mask != layer.return_sequences
        ),
        "stock layers of this version of Keras do not pass masks on, and it can get one": (
            passes_masks and not model_layers.stock_passes_masks() and _can_get_mask(layer, parents)
        ),
        "the model gives its initial_state": _has_given_states(layer),
    }
    return next((text for text, holds in reasons.items() if holds), None)


def _can_get_mask(layer: StackedRNN, parents: tuple[Any, ...]) -> bool:
    """Whether a call in the graph of a model, or of one around it, has a mask.

    A layer or nested model that no graph calls can get any mask.
    """
    model, *nested = parents
    called = [_keras_private.symbolic_calls(part) for part in (*nested, layer)]
    return not all(called) or any(map(_keras_private.gets_mask, (model, *nested, layer)))


def _has_given_states(layer: StackedRNN) -> bool:
    """Whether a functional model calls the layer with initial states."""
    calls = _keras_private.symbolic_calls(layer)
    return any(len(args) > 1 or given.get("initial_state") is not None for args, given in calls)


def replacement(config: dict[str, Any]) -> keras.Sequential | None:
    """The stock layers in place of a stack.

    Args:
      config: of any object of Keras, serialised, or a part of it. `reason` is None for a stack.

    Returns:
      The layers, not built; None if this is no stack.
    """
    cls = _CLASSES.get(config.get("registered_name"))
    return None if cls is None else _sequential(cls.from_config(config["config"]))


def recurrent(model: keras.Sequential) -> Iterator[Any]:
    """The stock layers of each direction, in the order layer * directions + direction.

    Args:
      model: what `replacement` returned.

    Yields:
      The recurrent layers.
    """
    for part in model.layers:
        if isinstance(part, keras.layers.Bidirectional):
            yield from (part.forward_layer, part.backward_layer)
        elif isinstance(part, keras.layers.RNN):
            yield part
