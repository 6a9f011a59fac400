"""Finds out what kind of file a path is, and reads it."""

from __future__ import annotations

import os

from tf_lstm_ops import _file_kinds, _files
from tf_lstm_ops.checkpoints.contents import PART_OF_CHECKPOINT, Contents

_HDF5 = b"\x89HDF\r\n\x1a\n"
_ZIP = b"PK\x03\x04"
_TABLE_END = bytes.fromhex("57fb808b247547db")  # of TensorFlow's tables


def read(path: str | os.PathLike[str]) -> Contents:
    """Reads a file of trained weights.

    TensorFlow is imported only if the file is one of TensorFlow, h5py only for HDF5.

    Args:
      path: the file or folder.

    Returns:
      Its contents.

    Raises:
      ImportError: a package that reads this kind of file is not installed.
      OSError: there is no such file, or it cannot be read.
      ValueError: it is of no known kind, or it is damaged.
    """
    name = os.fspath(path)
    if isinstance(name, bytes):
        name = os.fsdecode(name)
    if os.path.basename(name) == "saved_model.pb":
        name = os.path.dirname(name) or "."
    if os.path.isdir(name) or not os.path.exists(name) or PART_OF_CHECKPOINT.search(name):
        return _of_checkpoint(name)
    _files.check_readable(name)
    with open(name, "rb") as file:
        start = file.read(8)
        file.seek(max(os.path.getsize(name) - 8, 0))
        end = file.read(8)
    if start.startswith(_HDF5) or name.endswith((".h5", ".hdf5")):
        from tf_lstm_ops.checkpoints import hdf5

        return hdf5.read(name)
    if name.endswith(".keras") or (start.startswith(_ZIP) and not _file_kinds.advice(name)):
        from tf_lstm_ops.checkpoints import hdf5

        return hdf5.read_keras(name)
    if name.endswith(".safetensors"):
        from tf_lstm_ops.checkpoints import torch_names

        return torch_names.read(name)
    from tf_lstm_ops.checkpoints import tensorflow_files

    if name.endswith(".pb"):
        return tensorflow_files.read_graph(name)
    if end == _TABLE_END:
        return tensorflow_files.read_checkpoint(name, "TensorFlow checkpoint of format V1")
    return _of_checkpoint(name)


def _of_checkpoint(name: str) -> Contents:
    from tf_lstm_ops.checkpoints import tensorflow_files

    found = tensorflow_files.prefix_of(name)
    if found is not None:
        return tensorflow_files.read_checkpoint(*found)
    if not os.path.exists(name):
        raise FileNotFoundError(f"there is neither a file {name} nor a checkpoint {name}.index")
    if advice := _file_kinds.advice(name):
        raise ValueError(f"{name} has no weights for from_checkpoint: it is {advice}")
    raise ValueError(
        f"{name} is of no known kind: pass a TensorFlow checkpoint, a frozen graph (.pb), a folder "
        "of a SavedModel, or a file .h5, .hdf5, .keras, .weights.h5 or .safetensors"
    )
