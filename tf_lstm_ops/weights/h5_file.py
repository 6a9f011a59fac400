"""Reads .h5 files that Keras wrote, without Keras."""

from __future__ import annotations

import os
import re
from typing import Any, NamedTuple

import h5py
import numpy as np

from tf_lstm_ops import _files
from tf_lstm_ops._arrays import Array, as_numbers

_HEAP_HEADER = 16  # bytes at the beginning of a global heap, and of each object in it


class NamedArray(NamedTuple):
    """An array of a layer.

    Attributes:
      name: such as "lstm_1/kernel:0".
      value: the array.
    """

    name: str
    value: Array


class H5File(NamedTuple):
    """What a file says of a model.

    Attributes:
      path: the file.
      version: the version of Keras that wrote it, such as "2.2.4-tf"; "1" where it does not say.
      backend: "tensorflow", "theano", "cntk", or what the file says.
      config: class_name and config of the model; None in a file of weights.
      layers: the arrays of each layer by its name, in the model's order.
    """

    path: str
    version: str
    backend: str
    config: dict[str, Any] | None
    layers: dict[str, list[NamedArray]]

    @property
    def major(self) -> int:
        """The major version of Keras."""
        return major(self.version)


def major(version: str) -> int:
    """The first number of a version.

    Args:
      version: as of `H5File`.

    Returns:
      Such as 2.
    """
    return int(version.partition(".")[0])


def read(path: str | os.PathLike[str]) -> H5File:
    """Reads a file of `model.save` or of `model.save_weights`.

    Args:
      path: the file.

    Returns:
      Its contents, without the state of the optimizer.

    Raises:
      OSError: the file cannot be opened, or it is damaged.
      TypeError: path is no path.
      ValueError: it is no file of a Keras model, or a part of it is not valid.
    """
    name = os.fsdecode(_files.checked(path))
    check_readable(name)
    try:
        with h5py.File(name, "r") as file:
            return _read(name, file)
    except (KeyError, RuntimeError, TypeError, UnicodeError) as error:  # what h5py raises
        raise ValueError(f"{name} is damaged: {type(error).__name__}: {error}") from error
    except OSError as error:
        raise OSError(f"{name} cannot be read as an HDF5 file: {error}") from error


def check_readable(name: str) -> None:
    """Checks what h5py does not: that it is a regular file, and that reading it ends.

    Args:
      name: the path of an HDF5 file.

    Raises:
      OSError: the file cannot be opened, or is not a regular one.
      ValueError: the file is empty or damaged.
    """
    _files.check_readable(name)
    with open(name, "rb") as file:
        check_heaps(name, file.read())


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


def keras_version(path: str | os.PathLike[str]) -> str | None:
    """The version of Keras that wrote a file.

    Args:
      path: any file.

    Returns:
      Such as "2.2.4-tf"; "1" for a model of Keras 1; None for a file that no model is in.
    """
    try:
        check_readable(os.fsdecode(path))
        with h5py.File(os.fspath(path), "r") as file:
            version = _version(file, _weights_group(str(path), file))
            return version
    except Exception:  # h5py raises errors of many classes for files that are damaged
        return None


def _read(name: str, file: Any) -> H5File:
    group = _weights_group(name, file)
    version = _version(file, group)
    config = file.attrs.get("model_config")
    limit = _files.Limit(name, os.path.getsize(name))
    layers: dict[str, list[NamedArray]] = {}
    for layer in _texts(group, "layer_names"):
        part = member(group, layer, h5py.Group)
        names = _texts(part, "weight_names")
        layers[layer] = [NamedArray(n, array(part, n, limit)) for n in names]
    return H5File(
        name,
        version,
        _text(file.attrs.get("backend", group.attrs.get("backend", "tensorflow"))),
        None if config is None else parsed_config(f"model_config of {name}", _text(config)),
        layers,
    )


def _weights_group(name: str, file: Any) -> Any:
    group = member(file, "model_weights", h5py.Group) if "model_weights" in file else file
    if "layer_names" not in group.attrs and "layer_names0" not in group.attrs:
        raise ValueError(
            f"{name} has no model of Keras 1 or 2: it has no attribute layer_names. "
            "tf_lstm_ops.weights reads single layers of other files"
        )
    return group


def _version(file: Any, group: Any) -> str:
    version = _text(group.attrs.get("keras_version", file.attrs.get("keras_version", "1")))
    if not re.match(r"\d{1,3}(\.|$)", version):
        raise ValueError(f"the file has the version {version!r} of Keras, which is none")
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
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def parsed_config(name: str, text: str) -> dict[str, Any]:
    """Reads the configuration of a model.

    Args:
      name: what the text is, for messages.
      text: JSON with class_name and config.

    Returns:
      The object.

    Raises:
      ValueError: it is no JSON, or does not name a class.
    """
    config = _files.parsed(name, text)
    if not isinstance(config, dict) or not isinstance(config.get("class_name"), str):
        raise ValueError(f"{name} does not name the class of a model")
    return config


def member(group: Any, path: str, kind: type) -> Any:
    """A member of a group. Links are refused: files may come from anywhere.

    Args:
      group: a group of an open file.
      path: the names on the way to the member.
      kind: h5py.Group or h5py.Dataset.

    Returns:
      The member.

    Raises:
      ValueError: there is none, it is of another kind, or it is a link.
    """
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


def array(group: Any, path: str, limit: _files.Limit) -> Array:
    """Reads an array.

    Args:
      group: a group of an open file.
      path: as of `member`.
      limit: counts the arrays of the file.

    Returns:
      The array.

    Raises:
      ValueError: as of `member`; it has no numbers, more than the file can have, or those of
        another file.
    """
    data = member(group, path, h5py.Dataset)
    if data.external or data.is_virtual:
        raise ValueError(f"{path} of the file has its data in another file, which is not read")
    if data.shape is None:
        raise ValueError(f"{path} of the file has no elements and no shape")
    limit.take(path, data.size * data.dtype.itemsize)
    return np.asarray(as_numbers(path, data[()]))
