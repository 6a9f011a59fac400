"""Files of TensorFlow: checkpoints, SavedModels and frozen graphs. Only this module imports it."""

from __future__ import annotations

import glob
import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tf_lstm_ops import _files, _optional
from tf_lstm_ops._arrays import Array, as_numbers
from tf_lstm_ops._refusal import require
from tf_lstm_ops.checkpoints import forget_biases, keras_2, protobuf
from tf_lstm_ops.checkpoints.contents import (
    PART_OF_CHECKPOINT,
    Contents,
    Variable,
    layers_of,
)

SAVED_MODEL = "SavedModel"
_SUFFIX = "/.ATTRIBUTES/VARIABLE_VALUE"  # of names in checkpoints of objects
_OBJECTS = "_CHECKPOINTABLE_OBJECT_GRAPH"
# Slots. An optimizer also has the model's own variables, in other lists.
_SLOT = re.compile(r"(^|/)(_?optimizer/_variables|\.OPTIMIZER_SLOT)(/|$)")


def read_checkpoint(prefix: str, format: str) -> Contents:
    """Reads a checkpoint, of names or of objects.

    Args:
      prefix: the path without .index, or that of a file of TensorFlow's first format.
      format: the kind of file, in words.

    Returns:
      Its contents.

    Raises:
      ImportError: TensorFlow is not installed.
      OSError, ValueError: there is no such checkpoint, or it is damaged.
    """
    tf = _optional.require("tensorflow", f"the checkpoint {prefix}", "tensorflow", "keras")
    for file in _files_of(prefix):
        _files.check_regular(file)
    reader = _guarded(prefix, lambda: tf.train.load_checkpoint(prefix))
    shapes = _guarded(prefix, reader.get_variable_to_shape_map)
    dtypes = _guarded(prefix, reader.get_variable_to_dtype_map)
    most = _most_bytes(prefix)
    titles = _titles(tf, prefix, reader, most) if _OBJECTS in shapes else {}
    found: dict[str, Variable] = {}
    for key in sorted(shapes, key=_in_order):
        dtype, shape = dtypes[key], tuple(shapes[key])
        if _SLOT.search(key) or not (dtype.is_floating or dtype.is_integer):
            continue
        read = _tensor(prefix, reader, key, math.prod(shape) * dtype.size, most)
        found.setdefault(
            titles.get(key, key.removesuffix(_SUFFIX)), Variable(shape, dtype.name, read)
        )
    has_objects = _OBJECTS in shapes
    metadata = _metadata(prefix) if format == SAVED_MODEL else {}
    if "config" not in metadata:
        biases = None if has_objects else _forget_biases(tf, prefix, format)
        return Contents(format, found, has_objects=has_objects, forget_biases=biases)
    version = str(metadata.get("keras_version") or "2")
    return Contents(format, found, layers_of(metadata["config"]), version, has_objects)


def _metadata(prefix: str) -> Mapping[str, Any]:
    """What Keras 2 wrote of the model into a SavedModel, if it did."""
    found = keras_2.saved_metadata(Path(prefix).parents[1])
    return found if isinstance(found, Mapping) else {}


def _forget_biases(tf: Any, prefix: str, format: str) -> Mapping[str, float] | None:
    """As of `Contents`, of the graph beside a checkpoint."""
    path = Path(prefix).parents[1] / "saved_model.pb" if format == SAVED_MODEL else f"{prefix}.meta"
    meta = tf.compat.v1.MetaGraphDef()
    try:
        data = _files.content(str(path))
        if format == SAVED_MODEL:
            data = protobuf.texts(data, 2)[0]  # the first of meta_graphs
        meta.ParseFromString(data)
    except Exception:  # there is none, or protobuf cannot read it: the weights are there without it
        return None
    return forget_biases.of_graph(meta.graph_def)


def read_graph(path: str) -> Contents:
    """Reads the constants of a frozen graph.

    Args:
      path: a file with a serialized GraphDef.

    Returns:
      Its contents.

    Raises:
      ImportError: TensorFlow is not installed.
      OSError, ValueError: the file cannot be opened, or is no GraphDef.
    """
    tf = _optional.require("tensorflow", f"the frozen graph {path}", "tensorflow", "keras")
    graph = tf.compat.v1.GraphDef()
    data = _files.content(path)
    try:
        graph.ParseFromString(data)
    except Exception as error:  # the class depends on the implementation of protobuf
        raise ValueError(f"{path} is no frozen graph: {error}") from error
    require(graph.node, f"{path} is no frozen graph: it has no nodes")
    most = _files.most_bytes(len(data))
    found: dict[str, Variable] = {}
    for node in graph.node:
        if node.op == "Const" and node.attr["value"].HasField("tensor"):
            proto = node.attr["value"].tensor
            shape = tuple(dim.size for dim in proto.tensor_shape.dim)
            dtype = _dtype(tf, proto.dtype)
            if dtype is not None and min(shape, default=0) >= 0:
                found[node.name] = Variable(
                    shape, dtype.name, _constant(tf, node.name, proto, dtype, shape, most)
                )
    return Contents("frozen graph", found, forget_biases=forget_biases.of_graph(graph))


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
    if os.path.isdir(path):
        if os.path.exists(os.path.join(path, "saved_model.pb")):
            return os.path.join(path, "variables", "variables"), SAVED_MODEL
        return _newest(path), "TensorFlow checkpoint"
    prefix = PART_OF_CHECKPOINT.sub("", path)
    if os.path.exists(f"{prefix}.index"):
        return prefix, "TensorFlow checkpoint"
    return None


def _newest(folder: str) -> str:
    """The checkpoint of a folder. The file `checkpoint` often has the path of another machine."""
    indexes = sorted(glob.glob(os.path.join(glob.escape(folder), "*.index")))
    named = os.path.join(folder, "checkpoint")
    if os.path.exists(named):
        text = _files.content(named).decode("utf-8", "replace")
        match = re.search(r'^model_checkpoint_path: "(.*)"', text, re.MULTILINE)
        prefix = os.path.join(folder, re.split(r"[/\\]", match[1])[-1]) if match else ""
        if os.path.exists(f"{prefix}.index") or os.path.isfile(prefix):
            return prefix
    require(indexes, f"the folder {folder} has neither a checkpoint nor a SavedModel")
    names = ", ".join(os.path.basename(index) for index in indexes[:5])
    require(len(indexes) == 1, f"the folder {folder} has several checkpoints: {names}; pass one")
    return indexes[0].removesuffix(".index")


def _titles(tf: Any, prefix: str, reader: Any, most: int) -> dict[str, str]:
    """The variables' own names, for those of which the key is the number in a list."""
    data = _guarded(prefix, lambda: reader.get_tensor(_OBJECTS))
    found: dict[str, str] = {}
    for node in protobuf.texts(data, 1):  # of TrackableObjectGraph: nodes, then attributes
        for attribute in protobuf.texts(node, 2):
            name, key = (
                b"".join(protobuf.texts(attribute, number)).decode("utf-8", "replace")
                for number in (2, 3)
            )
            if name and re.search(rf"/\d+{re.escape(_SUFFIX)}$", key):
                found[key] = name.removesuffix(":0")
    return found


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


def _tensor(prefix: str, reader: Any, key: str, size: int, most: int) -> Callable[[], Array]:
    def read() -> Array:
        require(size <= most, f"{key} of {prefix} is larger than the file")
        return as_numbers(key, _guarded(prefix, lambda: reader.get_tensor(key)))

    return read


def _constant(
    tf: Any, name: str, proto: Any, dtype: Any, shape: tuple[int, ...], most: int
) -> Callable[[], Array]:
    def read() -> Array:
        size = math.prod(shape) * dtype.size
        require(size <= most, f"{name} has the shape {shape}, larger than the file")
        try:
            return np.array(tf.make_ndarray(proto))
        except (TypeError, ValueError, LookupError) as error:
            raise ValueError(f"the constant {name} is damaged: {error}") from error

    return read


def _dtype(tf: Any, number: int) -> Any:
    """The dtype of numbers, else None."""
    try:
        dtype = tf.as_dtype(number)
    except TypeError:
        return None
    return dtype if dtype.is_floating or dtype.is_integer else None


def _most_bytes(prefix: str) -> int:
    """The largest tensor that a checkpoint can have. Files of the first format are compressed."""
    if os.path.isfile(prefix):
        return _files.most_bytes(os.path.getsize(prefix))
    return sum(map(os.path.getsize, _data_of(prefix)))


def _data_of(prefix: str) -> list[str]:
    return glob.glob(glob.escape(prefix) + ".data-*")


def _files_of(prefix: str) -> list[str]:
    """The files of a checkpoint that exist."""
    index = f"{prefix}.index"
    found = [index, *_data_of(prefix)] if os.path.lexists(index) else [prefix]
    return [*filter(os.path.exists, found)]


def _in_order(key: str) -> list[tuple[int, str]]:
    """Sorts names with numbers by these numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", key)]
