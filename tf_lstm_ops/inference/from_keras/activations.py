"""The activation functions of Keras that a session computes."""

from __future__ import annotations

from typing import Any

import keras

from tf_lstm_ops import _activations
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_keras.recurrent import unsupported
from tf_lstm_ops.inference.layers.activations import Function
from tf_lstm_ops.keras.activations import described, name_of

# Functions that recurrent layers of a session do not have. Each has its default arguments.
_OTHERS = (
    *(f.name for f in _activations.TABLE if f.is_of_keras and not f.is_of_cells),
    _activations.RELU6,
)


def function(layer: Any, activation: Any) -> Function:
    """The activation of a layer.

    Args:
      layer: a Keras layer, for messages.
      activation: the function.

    Returns:
      Its name.

    Raises:
      ValueError: a session does not compute it.
    """
    name = name_of(activation)
    if name is not None:
        return name
    for other in _OTHERS:
        if activation is getattr(keras.activations, other, None):
            return other
    raise unsupported(
        layer,
        f"its activation is {described(activation)}, not one of "
        f"{', '.join((*_activations.OF_CELLS, *_OTHERS))}",
    )


def layer_of(layer: Any, activation: Any) -> layers.Layer:
    """The layer of an Activation.

    Args:
      layer: a Keras layer.
      activation: its function.

    Returns:
      The layer.

    Raises:
      ValueError: a session does not compute the function.
    """
    if activation is getattr(keras.activations, "glu", ()):
        return layers.GLU(layer.name)
    name = function(layer, activation)
    if name == "linear":
        return layers.Identity(layer.name)
    return layers.Activation(name, layer.name)
