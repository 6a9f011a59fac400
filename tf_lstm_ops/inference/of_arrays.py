"""Chains of layers and of arrays, without Keras."""

from __future__ import annotations

from typing import Any

from tf_lstm_ops.inference import file, layers
from tf_lstm_ops.inference.graph import Value, lower
from tf_lstm_ops.inference.layers.inputs import input_of
from tf_lstm_ops.inference.layers.recurrent import layer_class
from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

_WEIGHTS = (LSTMWeights, GRUWeights, RNNWeights)


def graph_of(chain: Any) -> file.Graph:
    """The graph of a chain.

    Args:
      chain: a layer; weights of `tf_lstm_ops.weights`, whose layer returns all steps; the pair of
        a kernel [I, units] and a bias [units]; or a list of them. Its first element may be a
        `layers.Input`.

    Returns:
      The graph.

    Raises:
      ValueError: the layers do not fit each other.
      TypeError: an element is no layer.
    """
    elements = chain if isinstance(chain, list | tuple) and not _is_pair(chain) else [chain]
    rest = [_layer_of(element) for element in elements]
    x = rest.pop(0) if rest and isinstance(rest[0], Value) else None
    together = layers.Chain(rest) if rest or x is None else layers.Identity()
    x = x or input_of(rest)
    return lower(x, together(x))


def is_chain(model: Any) -> bool:
    """Whether the argument of `Session` has layers or arrays rather than Keras' layers.

    Args:
      model: the argument.

    Returns:
      True for what `graph_of` takes, unless a layer of Keras is in a list.
    """
    elements = [model] if _is_element(model) or not isinstance(model, list | tuple) else model
    has_keras = any(hasattr(element, "get_weights") for element in elements)
    return any(map(_is_element, elements)) and not has_keras


def _layer_of(element: Any) -> Any:
    """The layer of weights or arrays; anything else as it is."""
    if isinstance(element, _WEIGHTS):
        return layer_class(element)(element, return_sequences=True)
    return layers.Dense(*element) if _is_pair(element) else element


def _is_pair(element: Any) -> bool:
    """Whether it is the pair of a kernel and a bias."""
    ranks = [getattr(each, "ndim", None) for each in element] if isinstance(element, tuple) else []
    return ranks == [2, 1]


def _is_element(element: Any) -> bool:
    return isinstance(element, (Value, layers.Layer, *_WEIGHTS)) or _is_pair(element)
