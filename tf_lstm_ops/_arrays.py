"""Arrays of any framework, their gates and their shapes."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
import numpy.typing as npt

from tf_lstm_ops._refusal import require

Array = npt.NDArray[Any]


def as_array(value: Any) -> Array:
    """A copy of an array, tensor or variable of any framework.

    Args:
      value: a NumPy array, a value that NumPy can convert, or a tensor or variable of TensorFlow,
        Keras or PyTorch, on any device.

    Returns:
      A NumPy array of the same shape and dtype, which shares no memory with value. Without the
      package ml_dtypes a bfloat16 tensor becomes float32, which has each of its numbers.
    """
    if hasattr(value, "detach"):  # PyTorch: out of the graph, off the device
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # PyTorch has no NumPy type for it
            floats: Array = value.float().numpy()
            try:
                import ml_dtypes
            except ImportError:
                return floats
            return floats.astype(ml_dtypes.bfloat16)
    return np.array(value.numpy() if hasattr(value, "numpy") else value)


def as_numbers(name: str, value: Any, rank: int | None = None) -> Array:
    """A copy of an array of numbers.

    Args:
      name: the argument's name in the messages.
      value: as of `as_array`.
      rank: its number of dimensions; None for any.

    Returns:
      A NumPy array of the same shape and dtype, which shares no memory with value.

    Raises:
      ValueError: value is no array, its elements are no numbers, or it has another rank.
    """
    expected = f"{name} must be an array"
    if rank is not None:
        expected += f" of {rank} dimension{'s' * (rank - 1)}"
    try:
        array = as_array(value)
    except (TypeError, ValueError, RuntimeError) as error:  # PyTorch: without data, of a dtype
        raise ValueError(f"{expected} but is {reprlib.repr(value)}: {error}") from error
    if array.ndim == 0 and not hasattr(value, "shape"):
        raise ValueError(f"{expected} but is {reprlib.repr(value)}")
    require(rank in (None, array.ndim), f"{expected} but has the shape {array.shape}")
    numbers = array.dtype.kind in "fiu" or array.dtype.name == "bfloat16"
    require(numbers, f"{name} must be an array of numbers but has the dtype {array.dtype}")
    return array


def reordered(array: Array, source: str, target: str) -> Array:
    """Reorders the gates.

    Args:
      array: [..., G*H], a block of the last axis for each gate.
      source: the gate order of array, a letter for each gate.
      target: the gate order of the result, the same letters.

    Returns:
      A new array [..., G*H].
    """
    blocks = dict(zip(source, np.split(array, len(source), axis=-1), strict=True))
    return np.concatenate([blocks[gate] for gate in target], axis=-1)


def require_shape(name: str, array: Array, *shape: int | str) -> None:
    """Checks the shape of an array.

    Args:
      name: the array's name in the message.
      array: the array.
      *shape: its sizes; a string is the name of a size that may have any value.

    Raises:
      ValueError: the shape differs.
    """
    fits = array.ndim == len(shape) and all(
        isinstance(want, str) or want == size for want, size in zip(shape, array.shape, strict=True)
    )
    expected = str(shape).replace("'", "")
    require(fits, f"{name} must be {expected} but is {array.shape}")
