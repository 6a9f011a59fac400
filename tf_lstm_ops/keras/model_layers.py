"""The layers of a Keras model and where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras

from tf_lstm_ops import _keras_private

CELLS = (keras.layers.LSTMCell, keras.layers.GRUCell, keras.layers.SimpleRNNCell)


class Located(NamedTuple):
    """A layer of a model and where it is.

    Attributes:
      path: the names of the layers around it and its own, joined by "/".
      layer: the layer.
      parents: the layers around it, the model first.
    """

    path: str
    layer: keras.Layer
    parents: tuple[Any, ...]


def located(model: keras.Model, wanted: Callable[[Any], bool]) -> Iterator[Located]:
    """The wanted layers of a model, also those of wrappers and nested models.

    Args:
      model: a Keras model or layer.
      wanted: whether a layer is to be found. What is inside a wanted layer is not looked at.

    Yields:
      The layers in the model's order; a layer in several places once for each.
    """
    yield from _located(Located("", model, ()), wanted)


def _located(parent: Located, wanted: Callable[[Any], bool]) -> Iterator[Located]:
    parents = (*parent.parents, parent.layer)
    for layer in _keras_private.children(parent.layer):
        item = Located(parent.path + layer.name, layer, parents)
        if wanted(layer):
            yield item
        else:
            yield from _located(item._replace(path=f"{item.path}/"), wanted)


def recurrent(model: keras.Model) -> Iterator[Located]:
    """The recurrent layers and bare cells of a model. The cell of a layer is part of that layer.

    Args:
      model: a Keras model or layer.

    Yields:
      The layers and cells in the model's order.
    """
    yield from located(model, lambda layer: isinstance(layer, (keras.layers.RNN, *CELLS)))


def stock_passes_masks() -> bool:
    """Whether stock recurrent layers pass masks on.

    Returns:
      False with Keras 3.16.
    """
    return keras.layers.LSTM(1).supports_masking
