"""JSON: what describes a model, and models whose numbers are in it."""

from __future__ import annotations

import json
from typing import Any

from tf_lstm_ops.files import limits


def parsed(name: str, text: str | bytes, has_numbers: bool = False) -> Any:
    """Reads JSON.

    Args:
      name: the name of the text in the message.
      text: the text.
      has_numbers: whether it is a file with the numbers of a model, which may have any size.

    Returns:
      The value.

    Raises:
      ValueError: it is no JSON, too large, too deep, or has a name twice in one object.
    """
    if not has_numbers and len(text) > limits.JSON_BYTES:
        raise ValueError(f"{name} has {len(text)} bytes, too many for the description of a model")

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        limits.require_different((key for key, _ in pairs), f"an object in {name}")
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=made)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name} is no JSON, or no complete JSON: {error}") from None
    _check_depth(name, value)
    return value


def _check_depth(name: str, value: Any) -> None:
    level, depth = [value], 0
    while level := [each for each in level if isinstance(each, dict | list)]:
        depth += 1
        if depth > limits.JSON_DEPTH:
            raise ValueError(f"{name} is more than {limits.JSON_DEPTH} levels deep")
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [part for parts in inner for part in parts if isinstance(part, dict | list)]


def config(name: str, text: str | bytes) -> dict[str, Any]:
    """Reads the configuration of a Keras model.

    Args:
      name: what the text is, for messages.
      text: JSON with class_name and config.

    Returns:
      The object.

    Raises:
      ValueError: as of `parsed`; or it does not name a class.
    """
    found = parsed(name, text)
    if not isinstance(found, dict) or not isinstance(found.get("class_name"), str):
        raise ValueError(f"{name} does not name the class of a model")
    return found
