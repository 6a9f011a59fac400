""".safetensors files: the variables have PyTorch's names."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from types import ModuleType

import numpy as np

from tf_lstm_ops import _optional
from tf_lstm_ops.checkpoints.contents import Contents, Variable
from tf_lstm_ops.weights.arrays import Array

_DTYPES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


def read(path: str) -> Contents:
    """Reads a .safetensors file.

    Args:
      path: the file.

    Returns:
      Its contents.

    Raises:
      ImportError: the package safetensors is not installed.
      OSError, ValueError: the file cannot be opened, or is damaged.
    """
    module = _module(path)
    try:
        with module.numpy.safe_open(path, framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            found = {
                name: Variable(
                    tuple(part.get_shape()), _DTYPES[part.get_dtype()], _reader(path, name)
                )
                for name, part in slices.items()
                if part.get_dtype() in _DTYPES
            }
    except module.SafetensorError as error:
        said = textwrap.shorten(str(error), 300)  # it may have the whole header
        raise ValueError(f"{path} is no valid .safetensors file: {said}") from error
    return Contents(".safetensors file", found)


def _reader(path: str, name: str) -> Callable[[], Array]:
    def read() -> Array:
        module = _module(path)
        try:
            with module.numpy.safe_open(path, framework="np") as file:
                return np.array(file.get_tensor(name))
        except (module.SafetensorError, AttributeError, TypeError) as error:
            raise ValueError(f"{name} of {path} cannot be read: {error}") from error

    return read


def _module(path: str) -> ModuleType:
    _optional.require("safetensors.numpy", f"the file {path}", "safetensors")
    return _optional.require("safetensors", f"the file {path}", "safetensors")
