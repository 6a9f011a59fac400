"""The activation functions that the fused ops have."""

from __future__ import annotations

import functools
from typing import Any

import keras

from tf_lstm_ops._activations import OF_CELLS


def _functions(name: str) -> list[Any]:
    """The functions of this name, whose other arguments have the same defaults.

    keras.ops.gelu is the approximation by tanh unless its argument says otherwise. The supported
    versions of Keras do not all have every function.
    """
    modules: list[Any] = [keras.activations]
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        modules.append(tf.nn)
    if name != "gelu":
        modules.append(keras.ops)
    return [getattr(module, name) for module in modules if hasattr(module, name)]


@functools.cache
def _known() -> dict[int, tuple[Any, str]]:
    """The functions of the op's names, and these names, by identity: not all have a hash."""
    return {id(function): (function, name) for name in OF_CELLS for function in _functions(name)}


def name_of(function: Any) -> str | None:
    """The name by which the ops know an activation.

    Args:
      function: an activation of a layer, as Keras keeps it.

    Returns:
      The value of the ops' attributes; None for a function that they do not have.
    """
    return _known().get(id(function), (None, None))[1]


def described(function: Any) -> str:
    """An activation's name in a message.

    Args:
      function: any function.

    Returns:
      Its name, or its text where it has none.
    """
    return getattr(function, "__name__", repr(function))
