"""The activation functions that the fused ops have."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

_NAMES = (
    *("linear", "relu", "tanh", "sigmoid", "hard_sigmoid", "hard_tanh", "softsign", "elu"),
    *("leaky_relu", "silu", "gelu"),
)


def _functions(name: str) -> list[Any]:
    """The functions of this name, whose other arguments have the same defaults.

    keras.ops.gelu is the approximation by tanh unless its argument says otherwise. The supported
    versions of Keras do not all have every function.
    """
    modules: list[Any] = [keras.activations, tf.nn]
    if name != "gelu":
        modules.append(keras.ops)
    return [getattr(module, name) for module in modules if hasattr(module, name)]


_FUNCTIONS = {name: _functions(name) for name in _NAMES}
# By identity: a function need not be hashable. _FUNCTIONS keeps the functions alive.
_NAME_OF = {id(function): name for name in _NAMES for function in _FUNCTIONS[name]}


def name_of(function: Any) -> str | None:
    """The name by which the ops know an activation.

    Args:
      function: an activation of a layer, as Keras keeps it.

    Returns:
      The value of the ops' attributes; None for a function that they do not have.
    """
    return _NAME_OF.get(id(function))


def described(function: Any) -> str:
    """An activation's name in a message.

    Args:
      function: any function.

    Returns:
      Its name, or its text where it has none.
    """
    return getattr(function, "__name__", repr(function))
