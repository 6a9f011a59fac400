"""Reads a file of any kind, and gives its variables the names by which cells are found."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping

from tf_lstm_ops.files import hdf5, keras_zip, kinds, limits, safetensors, tensorflow
from tf_lstm_ops.files.contents import Contents, Variable

_READERS: dict[str, Callable[[str], Contents]] = {
    "hdf5": hdf5.read,
    "keras": keras_zip.read,
    "safetensors": safetensors.read,
    "graph": tensorflow.frozen_graph,
    "checkpoint": tensorflow.checkpoint,
}
# Slots. An optimizer also has the model's own variables, in other lists.
_SLOT = re.compile(r"(^|/)(_?optimizer/_variables|\.OPTIMIZER_SLOT)(/|$)")


def read(path: str | os.PathLike[str]) -> Contents:
    """Reads a file of trained weights.

    TensorFlow is imported only if the file is one of TensorFlow, h5py only for HDF5.

    Args:
      path: the file or folder.

    Returns:
      Its contents. The names of arrays have no number of an output such as ":0", and the graph is
      also that beside a checkpoint.

    Raises:
      ImportError: a package that reads this kind of file is not installed.
      OSError: there is no such file, or it cannot be read.
      ValueError: it is of no known kind, or it is damaged.
    """
    found = _read(os.fsdecode(path))
    variables, graph = found.arrays, found.graph
    if found.kind in tensorflow.KINDS:
        variables = _named_in_checkpoint(found)
        if found.config is None and found.objects is None:
            graph = tensorflow.graph_beside(found.path, found.kind)
    elif found.kind == keras_zip.KIND and found.major == 2:
        names = dict(keras_zip.names_of_groups(found.config))
        variables = {_titled(name, names): each for name, each in variables.items()}
    elif found.kind == safetensors.KIND:
        dtypes = safetensors.FLOATS.values()
        variables = {name: each for name, each in variables.items() if each.dtype in dtypes}
    return dataclasses.replace(found, arrays=variables, graph=graph)


def _read(name: str) -> Contents:
    if (found := tensorflow.prefix_of(name)) is not None:
        return tensorflow.checkpoint(*found)
    if not os.path.exists(name):
        raise FileNotFoundError(f"there is neither a file {name} nor a checkpoint {name}.index")
    limits.check_readable(name)
    kind = kinds.kind_of(name)
    if kind == "checkpoint" and not kinds.by_content(name):
        kind = ""  # of any program
    if kind in _READERS:
        return _READERS[kind](name)
    if advice := kinds.advice(name):
        raise ValueError(f"{name} has no weights for from_checkpoint: it is {advice}")
    raise ValueError(
        f"{name} is of no known kind: pass a TensorFlow checkpoint, a frozen graph (.pb), a folder "
        "of a SavedModel, or a file .h5, .hdf5, .keras, .weights.h5 or .safetensors"
    )


def _titled(path: str, names: Mapping[str, str]) -> str:
    """A path with the names of layers in place of those of classes."""
    parts = path.split("/")
    return "/".join(
        names.get("/".join(parts[: end + 1]), part).rpartition("/")[2]
        for end, part in enumerate(parts)
    )


def _named_in_checkpoint(found: Contents) -> dict[str, Variable]:
    """The variables without slots; those whose keys are numbers in a list have their own names."""
    titles = {
        key: name.removesuffix(":0")
        for each in (tensorflow.objects(found.objects) if found.objects else ())
        for name, key in each.variables
        if name and re.search(rf"/\d+{re.escape(tensorflow.VALUE)}$", key)
    }
    named: dict[str, Variable] = {}
    for key in sorted(found.arrays, key=_in_order):
        if not _SLOT.search(key):
            name = titles.get(key, key.removesuffix(tensorflow.VALUE))
            named.setdefault(name, found.arrays[key])
    return named


def _in_order(key: str) -> list[tuple[int, str]]:
    """Sorts names with numbers by these numbers."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", key)]
