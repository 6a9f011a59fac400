"""Reads SavedModels that Keras 2 wrote: the layers, and the values of their variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops import _files
from tf_lstm_ops._arrays import as_numbers
from tf_lstm_ops.checkpoints import keras_2, protobuf
from tf_lstm_ops.weights.h5_file import NamedArray

_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # the key of the checkpoint's message


class SavedModel(NamedTuple):
    """What a folder says of a model.

    Attributes:
      config: class_name and config of the model.
      arrays: the values of its variables in Keras 2's order.
    """

    config: dict[str, Any]
    arrays: list[NamedArray]


def read(folder: Path) -> SavedModel:
    """Reads the folder of ``model.save(path, save_format="tf")`` of Keras 2.

    Args:
      folder: the folder.

    Returns:
      Its contents, without the optimizer and the functions.

    Raises:
      OSError: a file cannot be read.
      ValueError: no Keras model is in the folder, or a file is damaged.
    """
    metadata = _metadata(folder)
    if not isinstance(metadata.get("config"), dict | list):
        raise ValueError(
            f"the model in {folder} is of class {metadata.get('class_name')}, whose layers only "
            "its Python code makes. Make it in Python and take the weights by LSTMWeights or "
            "GRUWeights.from_checkpoint, or run it whole: keras.layers.TFSMLayer(path, "
            "call_endpoint='serving_default')"
        )
    config = {"class_name": metadata.get("class_name"), "config": metadata["config"]}
    return SavedModel(config, _variables(folder))


def _metadata(folder: Path) -> dict[str, Any]:
    """What Keras 2 wrote of the root object."""
    found = keras_2.saved_metadata(folder)
    if isinstance(found, dict):
        return found
    raise ValueError(
        f"{folder} is no SavedModel with layers of Keras 2. Run it whole: "
        "keras.layers.TFSMLayer(path, call_endpoint='serving_default')"
    )


def _variables(folder: Path) -> list[NamedArray]:
    """The children of the root's list `variables`, by the graph of objects in the checkpoint."""
    prefix = str(folder / "variables" / "variables")
    size = sum(file.stat().st_size for file in (folder / "variables").glob("variables.*"))
    read = _reader(prefix, _files.Limit(prefix, size))
    nodes = protobuf.texts(read(_GRAPH), 1)
    names = _children(nodes, 0)
    if "variables" not in names:
        raise ValueError(f"{folder} is damaged: its checkpoint has no list of variables")
    variables = _children(nodes, names["variables"])
    found: list[NamedArray] = []
    for number in range(len(variables)):
        if (node := variables.get(str(number))) is None:
            break
        for attribute in protobuf.texts(_node(nodes, node), 2)[:1]:
            full_name, key = (
                b"".join(protobuf.texts(attribute, k)).decode("utf-8", "replace") for k in (2, 3)
            )
            found.append(NamedArray(full_name, as_numbers(full_name, read(key))))
    return found


def _reader(prefix: str, limit: _files.Limit) -> Callable[[str], Any]:
    """What reads the tensors of a checkpoint by their keys."""

    def guarded(call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:  # the class depends on the code of the reader's status
            raise ValueError(f"{prefix} is no checkpoint that can be read: {error}") from error

    reader = guarded(lambda: tf.train.load_checkpoint(prefix))
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()

    def read(key: str) -> Any:
        if key in shapes:  # TensorFlow makes the tensor before it reads
            limit.take(key, math.prod(shapes[key]) * dtypes[key].size)
        return guarded(lambda: reader.get_tensor(key))

    return read


def _node(nodes: list[bytes], number: int) -> bytes:
    if number >= len(nodes):
        raise ValueError(f"the checkpoint has no object {number}")
    return nodes[number]


def _children(nodes: list[bytes], number: int) -> dict[str, int]:
    """The numbers of an object's children by name."""
    found: dict[str, int] = {}
    for child in protobuf.texts(_node(nodes, number), 1):
        values = dict(protobuf.fields(child))
        target, name = values.get(1, 0), values.get(2, b"")
        if isinstance(target, int) and isinstance(name, bytes):
            found[name.decode("utf-8", "replace")] = target
    return found
