"""What the families of recurrent layers are looked for in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from tf_lstm_ops.files.contents import Variable


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
    layers: Mapping[str, Mapping[str, Any]]
    keras_version: str | None
    has_objects: bool
    forget_biases: Mapping[str, float] | None


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
