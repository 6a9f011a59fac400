"""Files of the package safetensors, with PyTorch's names."""

from __future__ import annotations

import os

from tf_lstm_ops import _files
from tf_lstm_ops.files import safetensors
from tf_lstm_ops.files.contents import Lazy
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
    return from_torch(cls, Lazy(safetensors.read(path).arrays), prefix=prefix)


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
    content = safetensors.package().numpy.save(arrays, metadata={"format": "pt"})
    _files.write(_files.checked(path), content)
