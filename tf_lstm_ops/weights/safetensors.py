"""Files of the package safetensors, with PyTorch's names."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from tf_lstm_ops import _files, _optional
from tf_lstm_ops.weights.canonical import Self, Weights
from tf_lstm_ops.weights.torch import by_torch_names, from_torch


def from_safetensors(cls: type[Self], path: str | os.PathLike[str], *, prefix: str = "") -> Self:
    """From a .safetensors file with the state dict of a module that `from_torch` takes.

    Args:
      path: the file, of `to_safetensors`, or of a PyTorch model.
      prefix: the beginning of the module's names in the file, such as "encoder.". Other names are
        not read.

    Returns:
      The weights of all layers.

    Raises:
      ImportError: the package safetensors is not installed.
      OSError: the file cannot be opened.
      ValueError: the file is no .safetensors file; or an error of `from_torch`.
    """
    return from_torch(cls, opened(path), prefix=prefix)


def to_safetensors(self: Weights, path: str | os.PathLike[str], *, prefix: str = "") -> None:
    """To a .safetensors file with PyTorch's names.

    A module of PyTorch can load the file, unless there are peepholes. They have names that PyTorch
    does not know: ``weight_peephole_l0`` [3, H], rows i, f, o, and so on.

    Args:
      path: the file to write.
      prefix: what to put in front of the names, such as "encoder.".

    Raises:
      ImportError: the package safetensors is not installed.
      ValueError: reset_after is False.
      OSError: the file cannot be written. The old one then stays as it was.
    """
    self._require_reset_after("PyTorch's GRU")
    arrays = {prefix + name: array for name, array in by_torch_names(self)}
    content = _safetensors().numpy.save(arrays, metadata={"format": "pt"})
    _files.write(_files.checked(path), content)


def opened(path: str | os.PathLike[str]) -> Tensors:
    """Opens a .safetensors file.

    Args:
      path: the file.

    Returns:
      Its tensors by names.

    Raises:
      ImportError: the package safetensors is not installed.
      OSError: the file cannot be opened.
      ValueError: it is no .safetensors file.
    """
    module = _safetensors()
    _files.check_readable(_files.checked(path))
    try:
        return Tensors(module.numpy.safe_open(os.fspath(path), framework="np"))
    except module.SafetensorError as error:
        said = textwrap.shorten(str(error), 300)  # it may have the whole header
        raise ValueError(f"{path} is no valid .safetensors file: {said}") from error


class Tensors(Mapping[str, Any]):
    """The tensors of an open file. A tensor is read when it is asked for.

    So tensors of other modules may have dtypes that NumPy does not have.

    Args:
      file: the open file of the package safetensors.
    """

    def __init__(self, file: Any) -> None:
        self._file = file
        self._names: list[str] = list(file.keys())

    def __getitem__(self, name: str) -> Any:
        try:
            return self._file.get_tensor(name)
        except (ValueError, _safetensors().SafetensorError) as error:
            raise ValueError(f"{name} cannot be read: {error}") from error
        except (AttributeError, TypeError) as error:  # NumPy has no such dtype
            dtype = self.dtype(name)
            if dtype == "BF16":
                raise ValueError(
                    f"{name} has the dtype BF16, which NumPy has only with the package ml_dtypes. "
                    "Type: pip install ml_dtypes"
                ) from error
            raise ValueError(
                f"{name} has the dtype {dtype}, which NumPy does not have; store it as F16, BF16, "
                "F32 or F64"
            ) from error

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, which is not read.

        Args:
          name: its name.

        Returns:
          The sizes.
        """
        return tuple(self._file.get_slice(name).get_shape())

    def dtype(self, name: str) -> str:
        """The dtype of a tensor, which is not read.

        Args:
          name: its name.

        Returns:
          Such as "F32".
        """
        return str(self._file.get_slice(name).get_dtype())

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _safetensors() -> ModuleType:
    _optional.require("safetensors.numpy", "a .safetensors file", "safetensors")
    return _optional.require("safetensors", "a .safetensors file", "safetensors")
