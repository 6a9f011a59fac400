"""The arrays of .keras files that Keras 2.12 to 2.15 wrote, by the layers of a model."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from typing import Any

import keras

from tf_lstm_ops.files.contents import Contents, NamedArray
from tf_lstm_ops.files.keras_zip import snake_case
from tf_lstm_ops.keras.old_files import models

_Pairs = Iterator[tuple[Any, list[NamedArray]]]


def arrays_of(file: Contents, model: Any) -> _Pairs:
    """The arrays of the layers of a model, in Keras 2's order.

    Args:
      file: the file.
      model: the model that was made of it.

    Returns:
      Each layer, also those of models inside the model, with its arrays.

    Raises:
      ValueError: the file has a layer that keeps its weights in an unknown way.
    """
    return _of_model(file, "layers", model, file.config)


def _of_model(file: Contents, group: str, model: Any, config: Any) -> _Pairs:
    """As `arrays_of`. Groups are named by the classes of the layers, which are counted."""
    counts: collections.Counter[str] = collections.Counter()
    for layer, own in models.in_order(model, config):
        name = snake_case(own["class_name"])
        part = f"{name}_{counts[name]}" if counts[name] else name
        counts[name] += 1
        yield from _of_layer(file, f"{group}/{part}", layer, own)


def _of_layer(file: Contents, group: str, layer: Any, config: Any) -> _Pairs:
    """A layer with its arrays; the model inside of a TimeDistributed has several."""
    if isinstance(layer, keras.layers.TimeDistributed):
        inner = config["config"].get("layer")
        yield from _of_layer(file, f"{group}/layer", layer.layer, inner)
    elif isinstance(layer, keras.Model):
        yield from _of_model(file, f"{group}/layers", layer, config)
    else:
        yield layer, _arrays(file, group, layer)


def _arrays(file: Contents, group: str, layer: Any) -> list[NamedArray]:
    if isinstance(layer, keras.layers.Bidirectional):
        halves = {"forward_layer": layer.forward_layer, "backward_layer": layer.backward_layer}
        parts = (_arrays(file, f"{group}/{name}", half) for name, half in halves.items())
        return [array for part in parts for array in part]
    if isinstance(layer, keras.layers.RNN):
        if isinstance(layer.cell, keras.layers.StackedRNNCells):
            raise ValueError(f"layer {layer.name} has several cells, which is not read from .keras")
        group = f"{group}/cell"
    own = [path for path in file.arrays if path.rpartition("/")[0] == f"{group}/vars"]
    return [NamedArray(path, file.arrays[path]) for path in sorted(own, key=_in_order)]


def _in_order(path: str) -> tuple[int, str]:
    return len(path), path
