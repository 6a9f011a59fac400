"""Files of the package safetensors."""

from __future__ import annotations

import textwrap
from types import ModuleType
from typing import Any

from tf_lstm_ops import _optional
from tf_lstm_ops._arrays import Array
from tf_lstm_ops.files import limits
from tf_lstm_ops.files.contents import Contents, Variable

KIND = ".safetensors file"
# The floating-point types by their names in files.
FLOATS = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


def read(path: Any) -> Contents:
    """Reads a .safetensors file.

    Tensors that nobody asks for may have dtypes that NumPy does not have.

    Args:
      path: the file.

    Returns:
      Its contents. The dtypes without a row in `FLOATS` have their names in the file.

    Raises:
      ImportError: the package safetensors is not installed.
      TypeError: path is no path.
      OSError: the file cannot be opened.
      ValueError: it is no .safetensors file.
    """
    module = package()
    name = limits.readable(path)
    try:
        file = module.numpy.safe_open(name, framework="np")
    except module.SafetensorError as error:
        said = textwrap.shorten(str(error), 300)  # it may have the whole header
        raise ValueError(f"{name} is no valid .safetensors file: {said}") from error
    return Contents(name, KIND, {key: _variable(file, key) for key in file.keys()})  # noqa: SIM118


def _variable(file: Any, name: str) -> Variable:
    part = file.get_slice(name)
    dtype = str(part.get_dtype())

    def read() -> Array:
        try:
            tensor: Array = file.get_tensor(name)
        except (ValueError, package().SafetensorError) as error:
            raise ValueError(f"{name} cannot be read: {error}") from error
        except (AttributeError, TypeError) as error:  # NumPy has no such dtype
            if dtype == "BF16":
                raise ValueError(
                    f"{name} has the dtype BF16, which NumPy has only with the package ml_dtypes. "
                    "Type: pip install ml_dtypes"
                ) from error
            raise ValueError(
                f"{name} has the dtype {dtype}, which NumPy does not have; store it as F16, BF16, "
                "F32 or F64"
            ) from error
        return tensor

    return Variable(tuple(part.get_shape()), FLOATS.get(dtype, dtype), read)


def package() -> ModuleType:
    """The package safetensors.

    Returns:
      The module, of which `numpy` is imported.

    Raises:
      ImportError: it is not installed.
    """
    _optional.require("safetensors.numpy", "a .safetensors file", "safetensors")
    return _optional.require("safetensors", "a .safetensors file", "safetensors")
