""".safetensors files: the variables have PyTorch's names."""

from __future__ import annotations

import functools

import numpy as np

from tf_lstm_ops._arrays import Array
from tf_lstm_ops.checkpoints.contents import Contents, Variable
from tf_lstm_ops.weights import safetensors

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
    tensors = safetensors.opened(path)
    found = {
        name: Variable(
            tensors.shape(name), _DTYPES[dtype], functools.partial(_array, tensors, name)
        )
        for name in tensors
        if (dtype := tensors.dtype(name)) in _DTYPES
    }
    return Contents(".safetensors file", found)


def _array(tensors: safetensors.Tensors, name: str) -> Array:
    return np.array(tensors[name])
