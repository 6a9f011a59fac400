"""The .keras files of Keras 2.12 and later: zip archives with JSON and an HDF5 file."""

from __future__ import annotations

import collections
import dataclasses
import io
import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from tf_lstm_ops._refusal import require
from tf_lstm_ops.files import hdf5, json, limits
from tf_lstm_ops.files.contents import Contents, major

KIND = ".keras file"
_WEIGHTS = "model.weights.h5"


def read(path: Any) -> Contents:
    """Reads a .keras file.

    Args:
      path: the file.

    Returns:
      Its contents. The paths of the arrays have the groups of `names_of_groups` if Keras 2 wrote
      the file.

    Raises:
      ImportError: h5py is not installed.
      TypeError: path is no path.
      OSError: the file cannot be opened.
      ValueError: it is no .keras file, or it is damaged.
    """
    name = limits.readable(path)
    config, version = _object(name, "config.json"), _version(name)
    weights = io.BytesIO(_part(name, _WEIGHTS))
    found = hdf5.datasets(f"{_WEIGHTS} of {name}", weights, os.path.getsize(name))
    return dataclasses.replace(found, path=name, kind=KIND, config=config, version=version)


def keras_version(path: Any) -> str | None:
    """The version of Keras that wrote a file.

    Args:
      path: any file.

    Returns:
      Such as "2.15.0"; None for a file that is no .keras file.
    """
    try:
        return _version(limits.readable(path))
    except (OSError, ValueError):
        return None


def snake_case(name: str) -> str:
    """The name of a class as the groups of a .keras file have it.

    Args:
      name: such as "CuDNNLSTM", or "package>Name" of a registered class.

    Returns:
      Such as "cu_dnnlstm".
    """
    name = re.sub(r"\W+", "", name.rpartition(">")[2])
    name = re.sub(r"(.)([A-Z][a-z]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()


def names_of_groups(config: Any, prefix: str = "layers/") -> Iterator[tuple[str, str]]:
    """The names of layers by their groups in a file of Keras 2, which counts those of a class.

    Args:
      config: the class_name and config of a model.
      prefix: the group of its layers.

    Yields:
      The path of a group, such as "layers/lstm_1", and that with the layer's name in its place.
    """
    counts: collections.Counter[str] = collections.Counter()
    own = config.get("config") if isinstance(config, Mapping) else None
    layers = own.get("layers") if isinstance(own, Mapping) else None
    for layer in layers if isinstance(layers, list) else ():
        if not isinstance(layer, Mapping) or not isinstance(layer.get("config"), Mapping):
            continue
        kind = snake_case(str(layer.get("class_name")))
        group = f"{prefix}{kind}_{counts[kind]}" if counts[kind] else f"{prefix}{kind}"
        counts[kind] += 1
        yield group, f"{prefix}{layer['config'].get('name', kind)}"
        yield from names_of_groups(layer, f"{group}/layers/")


def _version(name: str) -> str:
    version = str(_object(name, "metadata.json").get("keras_version"))
    major(version)
    return version


def _object(path: str, name: str) -> dict[str, Any]:
    found = json.parsed(f"{path}: {name}", _part(path, name))
    require(isinstance(found, dict), f"{path} is no .keras file: its {name} has no object")
    return dict(found)


def _part(path: str, name: str) -> bytes:
    """A part of a file, which has at most as many bytes as such a file may hold."""
    is_json = name.endswith(".json")
    most = limits.JSON_BYTES if is_json else limits.most_bytes(os.path.getsize(path))
    try:
        with zipfile.ZipFile(path) as archive:
            limits.require_different(archive.namelist(), path)
            info = archive.getinfo(name)
            require(info.file_size <= most, f"{name} of {path} is too large")
            with archive.open(info) as file:
                data = file.read(most + 1)
    except KeyError:
        raise ValueError(f"{path} is no .keras file: it has no {name}") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"{path} is no .keras file: {error}") from error
    except (zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    require(len(data) <= most, f"{name} of {path} is too large")
    if not is_json:
        hdf5.check_heaps(f"{name} of {path}", data)
    return data
