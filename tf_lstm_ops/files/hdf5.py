"""HDF5 files: models and weights of Keras, and the weights of other programs."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tf_lstm_ops import _optional
from tf_lstm_ops._arrays import Array, as_numbers
from tf_lstm_ops._refusal import require
from tf_lstm_ops.files import json, limits
from tf_lstm_ops.files.contents import Contents, NamedArray, Variable, major

_HEAP_HEADER = 16  # bytes at the beginning of a global heap, and of each object in it
# What h5py raises, beside OSError and ValueError, for a file that is damaged.
_ERRORS = (KeyError, RuntimeError, TypeError, UnicodeError, OverflowError, MemoryError)
_KERAS = "Keras .h5 file"  # which lists the layers of a model
_Source = str | io.BytesIO


def read(path: Any) -> Contents:
    """Reads an HDF5 file.

    Args:
      path: a file of Keras 1, 2 or 3, or of another program.

    Returns:
      Its contents, without the state of Keras' optimizer. Links are not followed, other files are
      not read.

    Raises:
      ImportError: h5py is not installed.
      TypeError: path is no path.
      OSError, ValueError: the file cannot be opened, or is damaged.
    """
    name = _readable(path)
    with _opened(name, name) as file:
        group = _weights_group(file)
        found = None if group is None else _of_keras(name, file, group)
    return found or datasets(name, name, os.path.getsize(name))


def read_model(path: Any) -> Contents:
    """Reads a file of `model.save` or of `model.save_weights`.

    Args:
      path: as of `read`.

    Returns:
      Its contents.

    Raises:
      ImportError, TypeError, OSError, ValueError: as of `read`; or the file does not list layers.
    """
    found = read(path)
    require(
        found.kind == _KERAS,
        f"{found.path} has no model of Keras 1 or 2: it has no attribute layer_names. "
        "tf_lstm_ops.weights reads single layers of other files",
    )
    return found


def keras_version(path: Any) -> str | None:
    """The version of Keras that wrote a model, or the weights of one.

    Args:
      path: any file.

    Returns:
      Such as "2.2.4-tf"; "1" for a model of Keras 1; None for a file that no model is in.
    """
    try:
        name = _readable(path)
        with _opened(name, name) as file:
            group = _weights_group(file)
            return None if group is None else _version(file, group)
    except (OSError, ValueError):
        return None


def _readable(path: Any) -> str:
    """The name of a file that the HDF5 library reads to its end."""
    name = limits.readable(path)
    check_heaps(name, Path(name).read_bytes())
    return name


def check_heaps(name: str, content: bytes) -> None:
    """Checks that reading the global heaps of an HDF5 file ends.

    The HDF5 library walks through a global heap, where texts are, for ever if the heap has a gap of
    no bytes. A heap begins with "GCOL", the version 1, three zeros and its size; an object in it
    with its number, the count of references, four zeros and its size. The number 0 is a gap.

    Args:
      name: the path of the file.
      content: its bytes.

    Raises:
      ValueError: the file is damaged.
    """
    heaps: list[tuple[int, int]] = []
    for match in re.finditer(rb"GCOL\x01\0\0\0", content):
        at = match.start() + _HEAP_HEADER
        end = match.start() + int.from_bytes(content[at - 8 : at], "little")
        heaps.append((min(end, len(content)), at))
    # What looks like a heap may lie within another one. Each object is looked at once, since the
    # heaps that end later come first.
    is_seen = bytearray(len(content) if heaps else 0)
    for end, at in sorted(heaps, reverse=True):
        while at + _HEAP_HEADER <= end and not is_seen[at]:
            is_seen[at] = True
            number = int.from_bytes(content[at : at + 2], "little")
            size = int.from_bytes(content[at + 8 : at + 16], "little")
            if number == 0 and size == 0:
                raise ValueError(f"{name} is damaged: a global heap of it has a gap of no bytes")
            at += size if number == 0 else _HEAP_HEADER + -(-size // 8) * 8


def datasets(name: str, source: _Source, size: int) -> Contents:
    """All arrays of a file of any program.

    Args:
      name: the name of the file in messages.
      source: its path or its content.
      size: the bytes of the file that it is in.

    Returns:
      The arrays by their paths, in which the layers of Keras 3 have their own names.

    Raises:
      ImportError: h5py is not installed.
      OSError, ValueError: the file is damaged.
    """
    found: dict[str, Variable] = {}
    limit = limits.Limit(name, size)
    titles: dict[str, str] = {}

    def add(path: str, part: Any) -> None:
        if isinstance(part, h5py.Dataset) and part.dtype.kind in "fiu" and part.shape is not None:
            found[path] = _variable(name, source, path, part, limit)
        elif path.endswith("/vars") and isinstance(part.attrs.get("name"), str):
            titles[path.removesuffix("/vars")] = part.attrs["name"]

    h5py = _h5py(name)
    with _opened(name, source) as file:
        file.visititems(add)
    is_keras = any("/vars/" in path for path in found)
    return Contents(
        name,
        "Keras 3 weights" if is_keras else "HDF5 file",
        {_titled(path, titles): variable for path, variable in found.items()},
        "3" if is_keras else "",
    )


def _titled(path: str, titles: dict[str, str]) -> str:
    """A path of Keras 3, layers/gru/cell/vars/0, with the layer's name in place of its class."""
    match = re.match(r"((?:.*/)?layers/)([^/]+)/(.*)$", path)
    if match is None:
        return path
    title = titles.get(match[1] + match[2], match[2])
    return path if "/" in title else f"{match[1]}{title}/{match[3]}"


def _of_keras(name: str, file: Any, group: Any) -> Contents:
    h5py = _h5py(name)
    version = _version(file, group)
    config = file.attrs.get("model_config")
    limit = limits.Limit(name, os.path.getsize(name))
    layers: dict[str, list[NamedArray]] = {}
    listed = _texts(group, "layer_names")
    limits.require_different(listed, f"layer_names of {name}")
    for layer in listed:
        part = _member(group, layer, h5py.Group)
        layers[layer] = []
        for array in _texts(part, "weight_names"):
            data = _member(part, array, h5py.Dataset)
            if data.shape is None:
                raise ValueError(f"{array} of the file has no elements and no shape")
            variable = _variable(name, name, f"{part.name}/{array}", data, limit)
            layers[layer].append(NamedArray(array, variable))
    return Contents(
        name,
        _KERAS,
        {
            f"{layer}/{array}".removesuffix(":0"): variable
            for layer, arrays in layers.items()
            for array, variable in arrays
        },
        version,
        None if config is None else json.config(f"model_config of {name}", _text(config)),
        _text(file.attrs.get("backend", group.attrs.get("backend", "tensorflow"))),
        layers,
    )


def _weights_group(file: Any) -> Any:
    """The group with the weights of a model; None in a file of another program."""
    groups = [_member(file, "model_weights", _h5py("").Group)] if "model_weights" in file else []
    names = ("layer_names", "layer_names0")
    has_names = (each for each in (*groups, file) if any(name in each.attrs for name in names))
    return next(has_names, None)


def _version(file: Any, group: Any) -> str:
    version = _text(group.attrs.get("keras_version", file.attrs.get("keras_version", "1")))
    major(version)
    return version


def _texts(group: Any, name: str) -> list[str]:
    """An attribute that is a list of texts. Keras splits long ones into several attributes."""
    if name in group.attrs:
        return list(map(_text, group.attrs[name]))
    parts = [key for key in group.attrs if re.fullmatch(rf"{name}\d+", key)]
    if not parts:
        raise ValueError(f"{group.name} of the file has no attribute {name}")
    parts.sort(key=lambda key: int(key[len(name) :]))
    return [_text(value) for key in parts for value in group.attrs[key]]


def _text(value: Any) -> str:
    if not isinstance(value, str | bytes):
        raise ValueError(f"an attribute of the file is no text but {type(value).__name__}")
    return value.decode("utf-8") if isinstance(value, bytes) else value


def _member(group: Any, path: str, kind: type) -> Any:
    """A group or dataset in a group. Links are refused: files may come from anywhere."""
    h5py = _h5py("an HDF5 file")
    found = group
    for part in filter(None, path.split("/")):
        if not isinstance(found, h5py.Group) or part not in found:
            raise ValueError(f"the file has no {path} in {group.name}")
        if not isinstance(found.get(part, getlink=True), h5py.HardLink):
            raise ValueError(f"{path} in {group.name} of the file is a link, which is not followed")
        found = found[part]
    if not isinstance(found, kind):
        raise ValueError(f"{path} in {group.name} of the file is no {kind.__name__}")
    return found


def _variable(name: str, source: _Source, path: str, data: Any, limit: limits.Limit) -> Variable:
    limit.take(path, data.size * data.dtype.itemsize)

    def read() -> Array:
        with _opened(name, source, f"{path} of {name}") as file:
            own = file[path]
            is_here = not own.external and not own.is_virtual
            require(is_here, f"{path} of {name} has its data in another file, which is not read")
            return as_numbers(path, own[()])

    return Variable(data.shape, data.dtype.name, read)


@contextlib.contextmanager
def _opened(name: str, source: _Source, what: str = "") -> Iterator[Any]:
    """The open file. What h5py raises says what is read."""
    h5py = _h5py(name)
    try:
        with h5py.File(source, "r") as file:
            yield file
    except _ERRORS as error:
        raise ValueError(f"{what or name} is damaged: {type(error).__name__}: {error}") from error
    except OSError as error:
        words = "cannot be read" if what else "cannot be read as an HDF5 file"
        raise OSError(f"{what or name} {words}: {error}") from error


def _h5py(name: str) -> Any:
    return _optional.require("h5py", f"the file {name}", "h5py")
