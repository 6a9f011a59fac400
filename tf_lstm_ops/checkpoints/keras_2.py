"""What files of Keras 2 say of the layers of a model. It needs neither Keras nor TensorFlow."""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tf_lstm_ops import _files
from tf_lstm_ops.checkpoints import protobuf


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
    """The names of layers by their groups in a .keras file, which counts the layers of a class.

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


def saved_metadata(folder: Path) -> Any:
    """What Keras 2 wrote of a model into a SavedModel.

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
            return _files.parsed(f"the description of the layers in {folder}", text)
    return None


def _of_keras_file(folder: Path) -> bytes | None:
    """keras_metadata.pb of TensorFlow 2.5 and later: SavedMetadata.nodes, by node_path."""
    path = folder / "keras_metadata.pb"
    if not path.is_file():
        return None
    for node in protobuf.texts(path.read_bytes(), 1):
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
    message: bytes | None = path.read_bytes()
    for number in (2, 7, 1, 4, 3):
        message = None if message is None else next(iter(protobuf.texts(message, number)), None)
    return message or None
