"""The names of a model's outputs in a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops import _keras_private


def of_outputs(model: keras.Model, outputs: Any, taken: Collection[str] = ()) -> list[str]:
    """One name for each output of a model.

    Args:
      model: the model.
      outputs: what it returns: tensors or symbolic tensors in dicts, lists and tuples.
      taken: names that no output may get.

    Returns:
      The names in the order of ``tf.nest.flatten``: of an output in a dict its key; else the name
      of the layer that makes it, or of the model if its layers are not known; all made `unique`.
    """
    keys = list(_keys(outputs))
    layers: Sequence[str] = []
    if _keras_private.is_functional(model) or isinstance(model, keras.Sequential):
        layers = getattr(_keras_private.functional(model), "output_names", [])
    if len(layers) != len(keys):
        layers = [model.name] * len(keys)
    return unique([identifier(key or name) for key, name in zip(keys, layers, strict=True)], taken)


def _keys(outputs: Any) -> Iterator[str]:
    """The key of each output, those of nested dicts joined; empty without a dict."""
    if isinstance(outputs, dict):
        for key in sorted(outputs):
            yield from (f"{key}_{inner}" if inner else str(key) for inner in _keys(outputs[key]))
    elif isinstance(outputs, list | tuple):
        for output in outputs:
            yield from _keys(output)
    else:
        yield from [""] * len(tf.nest.flatten(outputs))


def unique(names: Sequence[str], taken: Collection[str] = ()) -> list[str]:
    """The names, with the smallest free number after those that occurred before.

    Args:
      names: the names.
      taken: names that must not be in the result.

    Returns:
      As many names. One that occurs once, and is not taken, stays as it is.
    """
    used, found = {*taken}, []
    for name in names:
        new, number = name, 0
        while new in used or (number and new in names):
            number += 1
            new = f"{name}_{number}"
        used.add(new)
        found.append(new)
    return found


def identifier(name: str) -> str:
    """A name of letters, digits and underscores.

    Args:
      name: a name of Keras.

    Returns:
      The name with an underscore in place of each other character.
    """
    return re.sub(r"\W", "_", name)
