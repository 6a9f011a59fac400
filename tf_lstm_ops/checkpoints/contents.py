"""What a file of trained weights holds: its variables, of which each is read when it is used."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tf_lstm_ops._arrays import Array

PART_OF_CHECKPOINT = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$")  # ends of names


class Variable(NamedTuple):
    """A variable of a file.

    Attributes:
      shape: its shape, as the file says.
      dtype: the name of its dtype.
      read: reads it; raises OSError or ValueError.
    """

    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], Array]


@dataclasses.dataclass(frozen=True)
class Contents:
    """What a file holds.

    Attributes:
      format: the kind of file, in words.
      variables: the variables by name. The names have no number of an output such as ":0".
      layers: the configurations of the model's recurrent layers by name, where the file has them.
      keras_version: the version of Keras that wrote the file; None if it is no file of Keras.
      has_objects: whether the names are those of attributes of objects, of any classes.
      forget_biases: what the file's graph adds to the forget gates of its cells, by their names;
        None without a graph.
    """

    format: str
    variables: Mapping[str, Variable]
    layers: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    keras_version: str | None = None
    has_objects: bool = False
    forget_biases: Mapping[str, float] | None = None


def layers_of(config: Any) -> dict[str, dict[str, Any]]:
    """The configurations of a model's recurrent layers.

    Args:
      config: the model's class_name and config, as of JSON; None for no layers.

    Returns:
      The configurations by the layers' names, and by those of wrappers around them.
    """
    found: dict[str, dict[str, Any]] = {}
    for part in _dictionaries(config):
        inner = part.get("layer")
        own = inner.get("config") if isinstance(inner, dict) else part
        if (
            isinstance(part.get("name"), str)
            and isinstance(own, dict)
            and ("recurrent_activation" in own or "inner_activation" in own)
        ):
            found[part["name"]] = own
    return found


def _dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    """All dictionaries in a value of JSON."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            yield part
            pending += part.values()
        elif isinstance(part, list):
            pending += part
