"""The states of a model's stateful layers."""

from __future__ import annotations

import keras
import tensorflow as tf

from tf_lstm_ops import _keras_private


def states_of(model: keras.Model) -> list[keras.Variable]:
    """The states of a model's stateful layers, also of those in wrappers and nested models.

    Args:
      model: a Keras model.

    Returns:
      The variables, in the order of the layers.
    """
    layers = [
        layer for layer in _keras_private.layers_of(model) if isinstance(layer, keras.layers.RNN)
    ]
    states = keras.tree.flatten([layer.states for layer in layers])
    return [state for state in states if state is not None]


def from_zeros(model: keras.Model) -> keras.StatelessScope:
    """A scope in which a model begins with zero states. A call in it changes no variable.

    Args:
      model: a Keras model.

    Returns:
      The scope, for one call of the model.
    """
    zeros = [(state, tf.zeros(state.shape, state.dtype)) for state in states_of(model)]
    return keras.StatelessScope(state_mapping=zeros)


def batch_size(model: keras.Model) -> int | None:
    """The batch size that the states of a model fix.

    Args:
      model: a Keras model.

    Returns:
      The number of rows of the states; None if no layer is stateful.
    """
    return next((state.shape[0] for state in states_of(model)), None)
