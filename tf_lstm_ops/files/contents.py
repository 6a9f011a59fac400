"""What a file of others holds: its arrays, of which each is read when it is used."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from tf_lstm_ops._arrays import Array


@dataclasses.dataclass(frozen=True)
class Variable:
    """An array of a file.

    Attributes:
      shape: its shape, as the file says.
      dtype: the name of its dtype.
      read: reads it; raises OSError or ValueError.
    """

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], Array]

    @functools.cached_property
    def value(self) -> Array:
        """The array, which is read once and kept.

        Returns:
          The array.
        """
        return self.read()


class NamedArray(NamedTuple):
    """An array of a layer.

    Attributes:
      name: such as "lstm_1/kernel:0".
      variable: the array.
    """

    name: str
    variable: Variable

    @property
    def value(self) -> Array:
        """The array, which is read once and kept."""
        return self.variable.value


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a file holds.

    Attributes:
      path: the file or folder.
      kind: the kind of file, in words.
      arrays: the arrays of numbers by the names that the file has.
      version: the version of Keras that wrote it, such as "2.2.4-tf"; empty if it is no file
        of Keras.
      config: class_name and config of the model, as of JSON; None in a file of weights.
      backend: of Keras: "tensorflow", "theano", "cntk", or what the file says.
      layers: the arrays of each layer by its name, in the model's order, in .h5 files of models.
      objects: the message TrackableObjectGraph of a checkpoint of TensorFlow 2; else None.
      graph: the GraphDef of a frozen graph; else None.
    """

    path: str
    kind: str
    arrays: Mapping[str, Variable]
    version: str = ""
    config: Any = None
    backend: str = "tensorflow"
    layers: Mapping[str, list[NamedArray]] = dataclasses.field(default_factory=dict)
    objects: bytes | None = None
    graph: Any = None

    @property
    def major(self) -> int:
        """The major version of Keras."""
        return major(self.version)

    @property
    def numbers(self) -> int:
        """The count of numbers in all arrays."""
        return sum(int(np.prod(each.shape, dtype=object)) for each in self.arrays.values())


class Lazy(Mapping[str, Array]):
    """The arrays of a file by name. An array is read whenever it is asked for.

    Args:
      variables: the arrays.
    """

    def __init__(self, variables: Mapping[str, Variable]) -> None:
        self.variables = variables

    def __getitem__(self, name: str) -> Array:
        return self.variables[name].read()

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)


def major(version: str) -> int:
    """The first number of a version of Keras.

    Args:
      version: as of `Contents`.

    Returns:
      Such as 2.

    Raises:
      ValueError: it does not begin with a number.
    """
    match = re.match(r"(\d{1,3})(\.|$)", version)
    if match is None:
        raise ValueError(f"the file has the version {version[:40]!r} of Keras, which is none")
    return int(match[1])
