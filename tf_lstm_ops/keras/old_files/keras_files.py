"""Reads .keras files that Keras 2.12 to 2.15 wrote."""

from __future__ import annotations

import collections
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import keras

from tf_lstm_ops import _files
from tf_lstm_ops.keras.old_files import models
from tf_lstm_ops.weights.h5_file import NamedArray, array, member

_MOST_BYTES = 1 << 34  # of a part of a file, unpacked
# What zipfile raises for an archive that is damaged, encrypted or packed in an unknown way.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


class KerasFile(NamedTuple):
    """What a file says of a model.

    Attributes:
      version: the version of Keras that wrote it.
      config: class_name and config of the model.
      weights: the bytes of the HDF5 file with its weights.
    """

    version: str
    config: dict[str, Any]
    weights: bytes


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
    try:
        with zipfile.ZipFile(path) as archive:
            parts = {}
            for name in ("metadata.json", "config.json", "model.weights.h5"):
                if archive.getinfo(name).file_size > _MOST_BYTES:
                    raise ValueError(f"{name} in {path} is larger than {_MOST_BYTES} bytes")
                parts[name] = archive.read(name)
        metadata, config = (json.loads(parts[k]) for k in ("metadata.json", "config.json"))
    except (*_DAMAGED, KeyError, RecursionError, ValueError) as error:
        raise ValueError(f"{path} is no .keras file: {error}") from error
    if not isinstance(metadata, dict) or not isinstance(config, dict):
        raise ValueError(f"{path} is no .keras file: its metadata or configuration is none")
    version = str(metadata.get("keras_version"))
    if not re.match(r"\d{1,3}\.", version):
        raise ValueError(f"{path} has the version {version!r} of Keras, which is none")
    return KerasFile(version, config, parts["model.weights.h5"])


def keras_version(path: Path) -> str | None:
    """The version of Keras that wrote a file.

    Args:
      path: any file.

    Returns:
      Such as "2.15.0"; None for a file that is no .keras file.
    """
    try:
        _files.check_readable(str(path))
        return read(path).version if zipfile.is_zipfile(path) else None
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
    try:
        with h5py.File(io.BytesIO(file.weights), "r") as weights:
            return list(_of_model(weights, model, file.config, len(file.weights)))
    except (OSError, RuntimeError, TypeError, KeyError) as error:
        raise ValueError(f"the weights of the file are damaged: {error}") from error


def _of_model(
    group: Any, model: Any, config: Any, size: int
) -> Iterator[tuple[Any, list[NamedArray]]]:
    """As `arrays_of`. Groups are named by the classes of the layers, which are counted."""
    parts = member(group, "layers", h5py.Group)
    counts: collections.Counter[str] = collections.Counter()
    for layer, own in models.in_order(model, config):
        name = _snake_case(own["class_name"].rpartition(">")[2])
        part = f"{name}_{counts[name]}" if counts[name] else name
        counts[name] += 1
        if part in parts:
            yield from _of_layer(member(parts, part, h5py.Group), layer, own, size)
        else:
            yield layer, []


def _snake_case(name: str) -> str:
    """The name of a class as Keras 2 wrote it."""
    name = re.sub(r"\W+", "", name)
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def _of_layer(
    group: Any, layer: Any, config: Any, size: int
) -> Iterator[tuple[Any, list[NamedArray]]]:
    """A layer with its arrays; the model inside of a TimeDistributed has several."""
    inner = config["config"].get("layer")
    if isinstance(layer, keras.layers.TimeDistributed):
        yield from _of_layer(member(group, "layer", h5py.Group), layer.layer, inner, size)
    elif isinstance(layer, keras.Model):
        yield from _of_model(group, layer, config, size)
    else:
        yield layer, _arrays(group, layer, size)


def _arrays(group: Any, layer: Any, size: int) -> list[NamedArray]:
    if isinstance(layer, keras.layers.Bidirectional):
        halves = (("forward_layer", layer.forward_layer), ("backward_layer", layer.backward_layer))
        groups = [(member(group, name, h5py.Group), half) for name, half in halves]
        return [found for each, half in groups for found in _arrays(each, half, size)]
    if isinstance(layer, keras.layers.RNN):
        if isinstance(layer.cell, keras.layers.StackedRNNCells):
            raise ValueError(f"layer {layer.name} has several cells, which is not read from .keras")
        group = member(group, "cell", h5py.Group)
    variables = member(group, "vars", h5py.Group)
    names = sorted(variables, key=lambda name: (len(name), name))
    return [NamedArray(f"{group.name}/{n}", array(variables, n, size)) for n in names]
