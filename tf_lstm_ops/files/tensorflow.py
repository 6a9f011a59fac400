"""Files of TensorFlow: checkpoints, SavedModels and frozen graphs. Only reading one imports it."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tf_lstm_ops import _optional
from tf_lstm_ops._arrays import Array, as_numbers
from tf_lstm_ops._refusal import require
from tf_lstm_ops.files import json, limits, protobuf
from tf_lstm_ops.files.contents import Contents, Variable

# What has a checkpoint, in words.
SAVED_MODEL, _CHECKPOINT, _FIRST = KINDS = (
    "SavedModel",
    "TensorFlow checkpoint",
    "TensorFlow checkpoint of format V1",
)
VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"  # the end of names in checkpoints of objects
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
_PART = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")  # ends of names


def prefix_of(path: str) -> tuple[str, str] | None:
    """Finds the checkpoint that a path means.

    Args:
      path: a prefix, one of the checkpoint's files, or a folder: a SavedModel, or one with
        checkpoints, of which the file `checkpoint` names the newest.

    Returns:
      The prefix and the kind of file in words; None for another path.

    Raises:
      ValueError: a folder has no checkpoint, or several and no file that names one.
    """
    if os.path.basename(path) == "saved_model.pb":
        path = os.path.dirname(path) or os.curdir
    if os.path.isdir(path):
        if os.path.exists(os.path.join(path, "saved_model.pb")):
            return os.path.join(path, "variables", "variables"), SAVED_MODEL
        return _newest(path), _CHECKPOINT
    prefix = _PART.sub("", path)
    return (prefix, _CHECKPOINT) if os.path.exists(f"{prefix}.index") else None


def _newest(folder: str) -> str:
    """The checkpoint of a folder. The file `checkpoint` often has the path of another machine."""
    indexes = sorted(glob.glob(os.path.join(glob.escape(folder), "*.index")))
    named = os.path.join(folder, "checkpoint")
    if os.path.exists(named):
        text = limits.content(named).decode("utf-8", "replace")
        match = re.search(r'^model_checkpoint_path: "(.*)"', text, re.MULTILINE)
        prefix = os.path.join(folder, re.split(r"[/\\]", match[1])[-1]) if match else ""
        if os.path.exists(f"{prefix}.index") or os.path.isfile(prefix):
            return prefix
    require(indexes, f"the folder {folder} has neither a checkpoint nor a SavedModel")
    names = ", ".join(os.path.basename(index) for index in indexes[:5])
    require(len(indexes) == 1, f"the folder {folder} has several checkpoints: {names}; pass one")
    return indexes[0].removesuffix(".index")


def checkpoint(prefix: str, kind: str = _FIRST) -> Contents:
    """Reads a checkpoint, of names or of objects.

    Args:
      prefix: the path without .index, or that of a file of TensorFlow's first format.
      kind: the kind of file, in words.

    Returns:
      Its arrays by their keys; for a SavedModel of Keras 2 also the configuration and the version.

    Raises:
      ImportError: TensorFlow is not installed.
      OSError, ValueError: there is no such checkpoint, or it is damaged.
    """
    tf = _optional.require("tensorflow", f"the checkpoint {prefix}", "tensorflow", "keras")
    index, data = f"{prefix}.index", glob.glob(glob.escape(prefix) + ".data-*")
    is_first = not os.path.lexists(index) and os.path.exists(prefix)
    files = [prefix] if is_first else [*filter(os.path.exists, [index, *data])]
    for file in files:
        limits.check_readable(file)
    limit = limits.Limit(prefix, sum(map(os.path.getsize, files)))
    reader = _guarded(prefix, lambda: tf.train.load_checkpoint(prefix))
    shapes = _guarded(prefix, reader.get_variable_to_shape_map)
    dtypes = _guarded(prefix, reader.get_variable_to_dtype_map)
    found = {
        key: _tensor(prefix, reader, key, tuple(shapes[key]), dtype, limit)
        for key, dtype in dtypes.items()
        if dtype.is_floating or dtype.is_integer
    }
    objects = _guarded(prefix, lambda: reader.get_tensor(_OBJECTS)) if _OBJECTS in shapes else None
    metadata = saved_metadata(Path(prefix).parents[1]) if kind == SAVED_MODEL else {}
    if not isinstance(metadata, dict) or "config" not in metadata:
        return Contents(prefix, kind, found, objects=objects)
    version = str(metadata.get("keras_version") or "2")
    return Contents(prefix, kind, found, version, metadata["config"], objects=objects)


def frozen_graph(path: str) -> Contents:
    """Reads the constants of a frozen graph.

    Args:
      path: a file with a serialized GraphDef.

    Returns:
      Its arrays, and the graph.

    Raises:
      ImportError: TensorFlow is not installed.
      OSError, ValueError: the file cannot be opened, or is no GraphDef.
    """
    tf = _optional.require("tensorflow", f"the frozen graph {path}", "tensorflow", "keras")
    graph = tf.compat.v1.GraphDef()
    data = limits.content(path)
    try:
        graph.ParseFromString(data)
    except Exception as error:  # the class depends on the implementation of protobuf
        raise ValueError(f"{path} is no frozen graph: {error}") from error
    require(graph.node, f"{path} is no frozen graph: it has no nodes")
    limits.require_different((node.name for node in graph.node), path)
    limit = limits.Limit(path, len(data))
    found: dict[str, Variable] = {}
    for node in graph.node:
        if node.op == "Const" and node.attr["value"].HasField("tensor"):
            proto = node.attr["value"].tensor
            shape = tuple(dim.size for dim in proto.tensor_shape.dim)
            dtype = _dtype(tf, proto.dtype)
            if dtype is not None and min(shape, default=0) >= 0:
                found[node.name] = _constant(tf, node.name, proto, dtype, shape, limit)
    return Contents(path, "frozen graph", found, graph=graph)


def graph_beside(prefix: str, kind: str) -> Any:
    """The graph that was saved with a checkpoint of TensorFlow 1.

    Args:
      prefix: as of `checkpoint`.
      kind: likewise.

    Returns:
      The GraphDef; None if there is none that can be read.
    """
    import tensorflow as tf

    is_saved_model = kind == SAVED_MODEL
    path = Path(prefix).parents[1] / "saved_model.pb" if is_saved_model else f"{prefix}.meta"
    meta = tf.compat.v1.MetaGraphDef()
    try:
        data = limits.content(path)
        # The first of the meta_graphs of a SavedModel.
        meta.ParseFromString(protobuf.texts(data, 2)[0] if is_saved_model else data)
    except Exception:  # there is none, or protobuf cannot read it: the weights are there without it
        return None
    return meta.graph_def


class Object(NamedTuple):
    """An object of a checkpoint of TensorFlow 2.

    Attributes:
      children: the numbers of the objects that are its attributes, by name.
      variables: the own name and the key of each variable that it is.
    """

    children: dict[str, int]
    variables: list[tuple[str, str]]


def objects(message: bytes) -> list[Object]:
    """The objects of a checkpoint.

    Args:
      message: a TrackableObjectGraph.

    Returns:
      The objects by number; the first one is the root.

    Raises:
      ValueError: the bytes are no such message.
    """
    found: list[Object] = []
    for node in protobuf.texts(message, 1):  # the numbers are those of fields
        children: dict[str, int] = {}
        for child in protobuf.texts(node, 1):
            values = dict(protobuf.fields(child))
            target, name = values.get(1, 0), values.get(2, b"")
            if isinstance(target, int) and isinstance(name, bytes):
                children[name.decode("utf-8", "replace")] = target
        variables = [
            (_joined(attribute, 2), _joined(attribute, 3)) for attribute in protobuf.texts(node, 2)
        ]
        found.append(Object(children, variables))
    return found


def _joined(message: bytes, number: int) -> str:
    return b"".join(protobuf.texts(message, number)).decode("utf-8", "replace")


def saved_metadata(folder: Path) -> Any:
    """What Keras 2 wrote of a model into a SavedModel. It needs no TensorFlow.

    Args:
      folder: of the SavedModel.

    Returns:
      The value of its JSON; None if there is none.

    Raises:
      OSError: a file cannot be read.
      ValueError: the folder is damaged.
    """
    for text in (_of_keras_file(folder), _of_object_graph(folder)):
        if text is not None:
            return json.parsed(f"the description of the layers in {folder}", text)
    return None


def _of_keras_file(folder: Path) -> bytes | None:
    """keras_metadata.pb of TensorFlow 2.5 and later: SavedMetadata.nodes, by node_path."""
    path = folder / "keras_metadata.pb"
    if not path.is_file():
        return None
    for node in protobuf.texts(limits.content(path), 1):
        if protobuf.texts(node, 3) == [b"root"]:
            return next(iter(protobuf.texts(node, 5)), None)
    return None


def _of_object_graph(folder: Path) -> bytes | None:
    """saved_model.pb of TensorFlow before 2.5.

    meta_graphs[0].object_graph_def.nodes[0].user_object.metadata; the numbers are those of fields.
    """
    path = folder / "saved_model.pb"
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is no SavedModel: it has no saved_model.pb")
    message: bytes | None = limits.content(path)
    for number in (2, 7, 1, 4, 3):
        message = None if message is None else next(iter(protobuf.texts(message, number)), None)
    return message or None


def _guarded(prefix: str, call: Callable[[], Any]) -> Any:
    """Calls TensorFlow's reader."""
    import tensorflow as tf

    try:
        return call()
    except tf.errors.NotFoundError as error:
        raise FileNotFoundError(f"there is no checkpoint {prefix}: {error.message}") from error
    except tf.errors.OpError as error:
        raise ValueError(f"{prefix} is damaged: {error.message}") from error
    except Exception as error:  # the class depends on the code of the reader's status
        raise ValueError(f"{prefix} is damaged: {type(error).__name__}: {error}") from error


def _tensor(
    prefix: str, reader: Any, key: str, shape: tuple[int, ...], dtype: Any, limit: limits.Limit
) -> Variable:
    def read() -> Array:
        limit.take(key, math.prod(shape) * dtype.size)  # TensorFlow makes it before it reads
        return as_numbers(key, _guarded(prefix, lambda: reader.get_tensor(key)))

    return Variable(shape, dtype.name, read)


def _constant(
    tf: Any, name: str, proto: Any, dtype: Any, shape: tuple[int, ...], limit: limits.Limit
) -> Variable:
    def read() -> Array:
        limit.take(name, math.prod(shape) * dtype.size)
        try:
            return np.array(tf.make_ndarray(proto))
        except (TypeError, ValueError, LookupError) as error:
            raise ValueError(f"the constant {name} is damaged: {error}") from error

    return Variable(shape, dtype.name, read)


def _dtype(tf: Any, number: int) -> Any:
    """The dtype of numbers, else None."""
    try:
        dtype = tf.as_dtype(number)
    except TypeError:
        return None
    return dtype if dtype.is_floating or dtype.is_integer else None
