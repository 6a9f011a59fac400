"""HDF5 files: models and weights of Keras, and the weights of ELMo."""

from __future__ import annotations

import functools
import io
import os
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from tf_lstm_ops import _files, _optional
from tf_lstm_ops._arrays import Array, as_numbers
from tf_lstm_ops._refusal import require
from tf_lstm_ops.checkpoints import keras_2
from tf_lstm_ops.checkpoints.contents import (
    Contents,
    Variable,
    layers_of,
)

# What h5py raises, beside OSError and ValueError, for a file that is damaged.
_H5PY_ERRORS = (KeyError, RuntimeError, TypeError, UnicodeError, OverflowError, MemoryError)


def read(path: str) -> Contents:
    """Reads an HDF5 file.

    Args:
      path: a file of Keras 1, 2 or 3, or of ELMo.

    Returns:
      Its contents.

    Raises:
      ImportError: h5py is not installed.
      OSError, ValueError: the file is damaged.
    """
    h5py = _optional.require("h5py", f"the file {path}", "h5py")
    from tf_lstm_ops.weights import h5_file

    h5_file.check_readable(path)
    try:
        with h5py.File(path, "r") as file:
            groups = [file, *([file["model_weights"]] if "model_weights" in file else [])]
            is_keras = any(k.startswith("layer_names") for g in groups for k in g.attrs)
    except _H5PY_ERRORS as error:
        raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise OSError(f"{path} cannot be read as an HDF5 file: {error}") from error
    return _of_keras(path) if is_keras else _of_datasets(path, path, os.path.getsize(path))


def read_keras(path: str) -> Contents:
    """Reads a .keras file.

    Args:
      path: the file, a zip archive with config.json and model.weights.h5.

    Returns:
      Its contents.

    Raises:
      ImportError: h5py is not installed.
      OSError, ValueError: the file is damaged.
    """
    config = _files.parsed("config.json", part(path, "config.json"))
    metadata = _files.parsed("metadata.json", part(path, "metadata.json"))
    weights = part(path, "model.weights.h5")
    version = metadata.get("keras_version") if isinstance(metadata, dict) else None
    size = os.path.getsize(path)
    found = _of_datasets(f"model.weights.h5 of {path}", io.BytesIO(weights), size)
    variables = found.variables
    if re.match(r"2\.", str(version)):
        variables = _named(variables, dict(keras_2.names_of_groups(config)))
    return Contents(".keras file", variables, layers_of(config), str(version or "3"))


def _named(variables: Mapping[str, Variable], names: Mapping[str, str]) -> dict[str, Variable]:
    """Variables with the names of layers in place of those of classes."""

    def named(path: str) -> str:
        parts = path.split("/")
        return "/".join(
            names.get("/".join(parts[: end + 1]), part).rpartition("/")[2]
            for end, part in enumerate(parts)
        )

    return {named(path): variable for path, variable in variables.items()}


def _decompression_errors() -> tuple[type[Exception], ...]:
    import lzma
    import zlib

    return (zlib.error, lzma.LZMAError)


_DECOMPRESSION_ERRORS = _decompression_errors()


def part(path: str, name: str) -> bytes:
    """Reads a part of a .keras file, which has at most as many bytes as such a file may hold.

    Args:
      path: the file.
      name: "config.json", "metadata.json" or "model.weights.h5".

    Returns:
      The bytes.

    Raises:
      OSError: the file cannot be opened, or is not a regular one.
      ValueError: it is no .keras file, or damaged, or the part is too large.
    """
    _files.check_readable(path)
    most = (
        _files.LARGEST_JSON if name.endswith(".json") else _files.most_bytes(os.path.getsize(path))
    )
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo(name)
            require(info.file_size <= most, f"{name} of {path} is too large")
            with archive.open(info) as file:
                data = file.read(most + 1)
    except KeyError:
        raise ValueError(f"{path} is no .keras file: it has no {name}") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ValueError(f"{path} is no .keras file: {error}") from error
    except _DECOMPRESSION_ERRORS as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    require(len(data) <= most, f"{name} of {path} is too large")
    if name.endswith(".h5"):
        from tf_lstm_ops.weights import h5_file

        h5_file.check_heaps(f"{name} of {path}", data)
    return data


def _of_keras(path: str) -> Contents:
    """A file of `model.save` or `model.save_weights` with the extension .h5."""
    from tf_lstm_ops.weights import h5_file

    file = h5_file.read(path)
    variables = {
        f"{layer}/{name}".removesuffix(":0"): Variable(
            value.shape, value.dtype.name, functools.partial(np.array, value)
        )
        for layer, arrays in file.layers.items()
        for name, value in arrays
    }
    return Contents("Keras .h5 file", variables, layers_of(file.config), file.version)


def _of_datasets(name: str, source: str | io.BytesIO, size: int) -> Contents:
    """All arrays of an HDF5 file. Links are not followed, other files are not read."""
    h5py = _optional.require("h5py", f"the file {name}", "h5py")
    found: dict[str, Variable] = {}
    limit = _files.Limit(name, size)
    titles: dict[str, str] = {}

    def add(path: str, part: Any) -> None:
        if isinstance(part, h5py.Dataset) and part.dtype.kind in "fiu" and part.shape is not None:
            limit.take(path, part.size * part.dtype.itemsize)
            found[path] = Variable(part.shape, part.dtype.name, lambda: _array(name, source, path))
        elif path.endswith("/vars") and isinstance(part.attrs.get("name"), str):
            titles[path.removesuffix("/vars")] = part.attrs["name"]

    try:
        with h5py.File(source, "r") as file:
            file.visititems(add)
    except _H5PY_ERRORS as error:
        raise ValueError(f"{name} is damaged: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise OSError(f"{name} cannot be read as an HDF5 file: {error}") from error
    is_keras = any("/vars/" in path for path in found)
    return Contents(
        "Keras 3 weights" if is_keras else "HDF5 file",
        {_titled(path, titles): variable for path, variable in found.items()},
        keras_version="3" if is_keras else None,
    )


def _array(name: str, source: str | io.BytesIO, path: str) -> Array:
    h5py = _optional.require("h5py", f"the file {name}", "h5py")
    try:
        with h5py.File(source, "r") as file:
            data = file[path]
            own = not data.external and not data.is_virtual
            require(own, f"{path} of {name} has its data in another file, which is not read")
            return np.asarray(as_numbers(path, data[()]))
    except _H5PY_ERRORS as error:
        raise ValueError(f"{path} of {name} is damaged: {error}") from error
    except OSError as error:
        raise OSError(f"{path} of {name} cannot be read: {error}") from error


def _titled(path: str, titles: dict[str, str]) -> str:
    """A path of Keras 3, layers/gru/cell/vars/0, with the layer's name in place of its class."""
    match = re.match(r"((?:.*/)?layers/)([^/]+)/(.*)$", path)
    if match is None:
        return path
    title = titles.get(match[1] + match[2], match[2])
    return path if "/" in title else f"{match[1]}{title}/{match[3]}"
