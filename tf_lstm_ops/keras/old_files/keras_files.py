"""Reads .keras files that Keras 2.12 to 2.15 wrote."""

from __future__ import annotations

import collections
import contextlib
import io
import os
import re
import reprlib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import keras

from tf_lstm_ops import _files
from tf_lstm_ops.checkpoints import hdf5
from tf_lstm_ops.checkpoints.keras_2 import snake_case
from tf_lstm_ops.keras.old_files import models
from tf_lstm_ops.weights.h5_file import NamedArray, array, member


class KerasFile(NamedTuple):
    """What a file says of a model.

    Attributes:
      version: the version of Keras that wrote it.
      config: class_name and config of the model.
      path: the file.
    """

    version: str
    config: dict[str, Any]
    path: str


def read(path: Path) -> KerasFile:
    """Reads a .keras file.

    Args:
      path: the file.

    Returns:
      Its contents.

    Raises:
      OSError: the file cannot be opened.
      ValueError: it is no .keras file, or it is damaged.
    """
    version, config = _version(path), _json(path, "config.json")
    return KerasFile(version, config, str(path))


def _version(path: Path) -> str:
    version = str(_json(path, "metadata.json").get("keras_version"))
    if not re.match(r"\d{1,3}\.", version):
        raise ValueError(f"{path} has the version {reprlib.repr(version)} of Keras, which is none")
    return version


def _json(path: Path, name: str) -> dict[str, Any]:
    found = _files.parsed(f"{name} of {path}", hdf5.part(str(path), name))
    if not isinstance(found, dict):
        raise ValueError(f"{path} is no .keras file: its {name} has no object")
    return found


def keras_version(path: Path) -> str | None:
    """The version of Keras that wrote a file.

    Args:
      path: any file.

    Returns:
      Such as "2.15.0"; None for a file that is no .keras file.
    """
    try:
        _files.check_readable(str(path))
        return _version(path) if zipfile.is_zipfile(path) else None
    except (OSError, ValueError):
        return None


def arrays_of(file: KerasFile, model: Any) -> list[tuple[Any, list[NamedArray]]]:
    """The arrays of the layers of a model, in Keras 2's order.

    Args:
      file: the file.
      model: the model that was made of it.

    Returns:
      Each layer, also those of models inside the model, with its arrays.

    Raises:
      ValueError: the file is damaged, or has a layer that keeps its weights in an unknown way.
    """
    with _weights(file) as (weights, size):
        limit = _files.Limit(file.path, size)
        return list(_of_model(weights, model, file.config, limit))


def count_of_numbers(file: KerasFile) -> int:
    """The count of numbers in all arrays of a file.

    Args:
      file: the file.

    Returns:
      The number.

    Raises:
      ValueError: the file is damaged, or they take much more memory than the file.
    """
    count = 0

    def add(name: str, part: Any) -> None:
        nonlocal count
        if isinstance(part, h5py.Dataset) and part.size is not None:
            limit.take(name, part.size * part.dtype.itemsize)
            count += part.size

    with _weights(file) as (weights, size):
        limit = _files.Limit(file.path, size)
        weights.visititems(add)
    return count


@contextlib.contextmanager
def _weights(file: KerasFile) -> Iterator[tuple[Any, int]]:
    """The open HDF5 file with the weights, and the size of the whole file in bytes."""
    content = hdf5.part(file.path, "model.weights.h5")
    try:
        with h5py.File(io.BytesIO(content), "r") as weights:
            yield weights, os.path.getsize(file.path)
    except (OSError, RuntimeError, TypeError, KeyError) as error:
        raise ValueError(f"the weights of the file are damaged: {error}") from error


def _of_model(
    group: Any, model: Any, config: Any, limit: _files.Limit
) -> Iterator[tuple[Any, list[NamedArray]]]:
    """As `arrays_of`. Groups are named by the classes of the layers, which are counted."""
    parts = member(group, "layers", h5py.Group)
    counts: collections.Counter[str] = collections.Counter()
    for layer, own in models.in_order(model, config):
        name = snake_case(own["class_name"])
        part = f"{name}_{counts[name]}" if counts[name] else name
        counts[name] += 1
        if part in parts:
            yield from _of_layer(member(parts, part, h5py.Group), layer, own, limit)
        else:
            yield layer, []


def _of_layer(
    group: Any, layer: Any, config: Any, limit: _files.Limit
) -> Iterator[tuple[Any, list[NamedArray]]]:
    """A layer with its arrays; the model inside of a TimeDistributed has several."""
    inner = config["config"].get("layer")
    if isinstance(layer, keras.layers.TimeDistributed):
        yield from _of_layer(member(group, "layer", h5py.Group), layer.layer, inner, limit)
    elif isinstance(layer, keras.Model):
        yield from _of_model(group, layer, config, limit)
    else:
        yield layer, _arrays(group, layer, limit)


def _arrays(group: Any, layer: Any, limit: _files.Limit) -> list[NamedArray]:
    if isinstance(layer, keras.layers.Bidirectional):
        halves = (("forward_layer", layer.forward_layer), ("backward_layer", layer.backward_layer))
        groups = [(member(group, name, h5py.Group), half) for name, half in halves]
        return [found for each, half in groups for found in _arrays(each, half, limit)]
    if isinstance(layer, keras.layers.RNN):
        if isinstance(layer.cell, keras.layers.StackedRNNCells):
            raise ValueError(f"layer {layer.name} has several cells, which is not read from .keras")
        group = member(group, "cell", h5py.Group)
    variables = member(group, "vars", h5py.Group)
    names = sorted(variables, key=lambda name: (len(name), name))
    return [NamedArray(f"{group.name}/{n}", array(variables, n, limit)) for n in names]
