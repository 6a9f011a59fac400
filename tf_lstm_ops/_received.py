"""What came in place of a model, a layer or weights, and the call that is right for it.

This module imports neither TensorFlow nor Keras.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator
from typing import Any

_LOAD = "Load it with keras.models.load_model"
_LENGTH = 200  # characters of a value in a message


def text(value: Any) -> str:
    """What came, in a few words. Contents of containers and arrays are left out.

    Args:
      value: an argument.

    Returns:
      A path as it is, numbers and Keras' layers as Python shows them, of all others the class.
    """
    cls = type(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    is_layer = any(base.__module__.startswith("keras.") for base in cls.__mro__)
    if is_layer or isinstance(value, str | bytes | int | float | None):
        shown = repr(value)
        return shown if len(shown) <= _LENGTH else reprlib.repr(value)
    package = cls.__module__.partition(".")[0]
    return cls.__qualname__ if package == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def printable(name: str) -> str:
    """A name of a file for a message.

    Args:
      name: the name, which may have any characters.

    Returns:
      The name. Characters that change how a terminal shows a text are escaped as Python does.
    """
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in name)


def instead_of_model(value: Any) -> str:
    """What to do with an argument that should be a Keras model or layer.

    Args:
      value: the argument.

    Returns:
      A sentence, behind ". "; empty if nothing is known.
    """
    if is_path(value):
        return f". {_LOAD}"
    if kind := _torch_kind(value):
        return (
            f". For a PyTorch module: tf_lstm_ops.weights.{kind}Weights.from_torch reads its "
            f"weights, and tf_lstm_ops.keras.Stacked{kind}.from_weights makes a layer of them"
        )
    for kind in ("LSTM", "GRU"):
        if type(value).__name__ == f"{kind}Weights":
            return f". Make a layer of it with tf_lstm_ops.keras.Stacked{kind}.from_weights"
    return ""


def instead_of_state_dict(value: Any) -> str:
    """What to do with an argument that should be a PyTorch module or its state dict.

    Args:
      value: the argument.

    Returns:
      As `instead_of_model`.
    """
    if is_path(value):
        if os.fsdecode(value).endswith(".safetensors"):
            return ". from_safetensors reads such a file"
        return f". Load the file first: from_torch(torch.load({text(value)}))"
    return ". from_keras reads layers of Keras" if hasattr(value, "get_weights") else ""


def instead_of_layer(value: Any) -> str:
    """What to do with an argument that should be a recurrent layer of Keras, or its weights.

    Args:
      value: the argument.

    Returns:
      As `instead_of_model`.
    """
    if is_path(value):
        return f". {_LOAD}, and pass a recurrent layer of the model"
    if _torch_kind(value):
        return ". from_torch reads modules of PyTorch"
    if names := list(_recurrent_names(value)):
        layers = " or ".join(f"model.get_layer({name!r})" for name in names[:2])
        return f". Of a model, pass a recurrent layer: {layers}"
    return ""


def is_path(value: Any) -> bool:
    """Whether a value is the path of a file.

    Args:
      value: an argument.

    Returns:
      True for texts, bytes and ``os.PathLike``.
    """
    return isinstance(value, str | bytes | os.PathLike)


def is_torch_module(value: Any) -> bool:
    """Whether a value is a module of PyTorch. PyTorch is not imported.

    Args:
      value: an argument.

    Returns:
      The answer.
    """
    return any(cls.__module__ == "torch.nn.modules.module" for cls in type(value).__mro__)


def _torch_kind(value: Any) -> str | None:
    """Of a module of PyTorch: "GRU" for one, else "LSTM"; None for other values."""
    if not is_torch_module(value):
        return None
    return "GRU" if type(value).__name__.startswith("GRU") else "LSTM"


def _recurrent_names(model: Any) -> Iterator[str]:
    for layer in getattr(model, "layers", ()):
        if any(hasattr(layer, name) for name in ("cell", "forward_layer")):
            yield layer.name
