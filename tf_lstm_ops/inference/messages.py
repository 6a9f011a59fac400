"""Errors of the library of sessions, with what only Python knows."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tf_lstm_ops import _received
from tf_lstm_ops.inference import native


def explained(error: ValueError, path: Any) -> str:
    """An error of the library after the name of the file.

    Args:
      error: the error.
      path: the file.

    Returns:
      The text.
    """
    if not isinstance(error, native.NotASessionFileError):
        return f": {error}"
    if method := _method_of(path):
        return f" is not a file of Session.save ({error}). Session.{method} reads it"
    return (
        f" is not a file of Session.save ({error}). For a Keras model: "
        f"Session(keras.models.load_model({os.fspath(path)!r}))"
    )


def require_keras(model: Any) -> None:
    """Refuses sources that need another method of `Session`, not Keras.

    Args:
      model: the argument of `Session`.

    Raises:
      TypeError: it is such a source.
    """
    method = _method_of(model)
    listed = model if isinstance(model, list | tuple) else [model]
    if isinstance(model, Mapping) or any(map(_received.is_torch_module, listed)):
        method = "from_torch"
    if method:
        raise TypeError(
            f"Session(model) takes a model of Keras. Use Session.{method}. Received: "
            f"{_received.text(model)}"
        )


def _method_of(path: Any) -> str | None:
    """The method that reads a file of another program; None if there is none."""
    if not _received.is_path(path):
        return None
    end = os.path.splitext(os.fsdecode(path))[1].lower()
    return {
        ".onnx": "from_onnx",
        **dict.fromkeys((".pt", ".pth", ".safetensors"), "from_torch"),
    }.get(end)
