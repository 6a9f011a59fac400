"""Tensors whose data is in a file beside the ONNX file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tf_lstm_ops.files import limits
from tf_lstm_ops.onnx_graph import tensors
from tf_lstm_ops.onnx_graph.attributes import graphs, short

if TYPE_CHECKING:
    import onnx


def load(graph: onnx.GraphProto, folder: str | None) -> None:
    """Reads the data of the tensors of a graph and its sub-graphs, into them.

    Args:
      graph: the graph.
      folder: that of the ONNX file, in which the other files must be; None: there is none.

    Raises:
      OSError: a file cannot be read, or is not a regular one.
      ValueError: a tensor says no such place, or one outside the folder or the file. The text names
        the tensor.
    """
    left: dict[str, int] = {}  # bytes by file
    for tensor in _all(graph):
        if tensor.data_location != type(tensor).EXTERNAL:
            continue
        where = f"tensor {short(tensor.name)}"
        if folder is None:
            raise ValueError(f"{where} is in another file; pass the path of the ONNX file")
        place = {entry.key: entry.value for entry in tensor.external_data}
        path = _path(place.get("location", ""), folder, where)
        tensor.raw_data = _read(tensor, place, path, where, left)
        tensor.data_location = type(tensor).DEFAULT
        del tensor.external_data[:]


def _all(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    for each in graphs(graph):
        yield from each.initializer
        for attribute in (attribute for node in each.node for attribute in node.attribute):
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors


def _path(location: str, folder: str, where: str) -> str:
    name = f"{where} is in the file {short(location)!r}"
    if not location or "\0" in location:
        raise ValueError(f"{where} is in another file, whose name is {short(location)!r}")
    root = os.path.realpath(folder)
    path = os.path.realpath(os.path.join(root, location))
    if os.path.isabs(location) or not path.startswith(os.path.join(root, "")):
        raise ValueError(f"{name}, which is outside the folder of the ONNX file")
    try:
        limits.check_readable(path)
    except FileNotFoundError as error:
        raise FileNotFoundError(error.errno, f"{name}, which is missing", path) from error
    return path


def _read(
    tensor: onnx.TensorProto, place: dict[str, str], path: str, where: str, left: dict[str, int]
) -> bytes:
    want, size = tensors.byte_size(tensor, where), os.path.getsize(path)
    offset = _number(place.get("offset", "0"), "offset", where)
    length = _number(place.get("length", str(want)), "length", where)
    if length != want:
        raise ValueError(f"{where} must have {want} bytes by its sizes but has the length {length}")
    if offset + length > size:
        raise ValueError(
            f"{where} must have the bytes {offset} to {offset + length} of {os.path.basename(path)}"
            f", which has {size} bytes"
        )
    left[path] = left.get(path, limits.READS_OF_A_FILE * size) - length
    if left[path] < 0:
        raise ValueError(f"{where}: tensors share {os.path.basename(path)} too often")
    with open(path, "rb") as file:
        file.seek(offset)
        data = file.read(length)
    if len(data) != length:
        raise ValueError(f"{where}: {os.path.basename(path)} has become shorter")
    return data


def _number(text: str, name: str, where: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise ValueError(f"{where} has the {name} {short(text)!r}, which is no number")
    return int(text)
