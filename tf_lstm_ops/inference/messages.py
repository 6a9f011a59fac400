"""Errors of the library of sessions, with what only Python knows."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any


def explained(error: ValueError, path: Any) -> str:
    """An error of the library after the name of the file.

    Args:
      error: the error.
      path: the file.

    Returns:
      The text.
    """
    if "magic" not in str(error):
        return f": {error}"
    return (
        f" is not a file of Session.save ({error}). For a Keras model: "
        f"Session(keras.models.load_model({os.fspath(path)!r}))"
    )


def with_name(text: str, names: Sequence[str]) -> str:
    """A text of the library, with the name of the layer whose number it has.

    Args:
      text: of an error.
      names: of the layers.

    Returns:
      The text.
    """
    found = re.search(r"layer (\d+)( of the file, counted from 0)?", text)
    if not found or int(found[1]) >= len(names):
        return text
    name = names[int(found[1])]
    label = name if found[2] else f"{found[0]}, {name},"
    return f"{text[: found.start()]}{label}{text[found.end() :]}"
