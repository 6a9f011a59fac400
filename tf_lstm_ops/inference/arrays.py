"""The arrays of calls: conversion of inputs, checks of outputs, pointers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def as_array(name: str, value: Any) -> npt.NDArray[Any]:
    """The array of an argument.

    Args:
      name: of the argument.
      value: a NumPy array, an object with ``__dlpack__`` on the CPU, or what np.asarray takes.

    Returns:
      The array, of any numeric type. It shares memory with `value` where that is possible.

    Raises:
      ValueError: NumPy cannot read the value, for instance because it is on a GPU.
      TypeError: the elements are not real numbers.
    """
    if not isinstance(value, np.ndarray):
        value = _imported(name, value)
    if value.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be an array of real numbers. Received: dtype {value.dtype}")
    return value


def _imported(name: str, value: Any) -> npt.NDArray[Any]:
    if not hasattr(value, "__dlpack__"):
        try:
            return np.asarray(value)
        except ValueError as error:  # lists of different lengths
            raise ValueError(f"{name} must be an array of real numbers. {error}") from None
    try:
        return np.from_dlpack(value)
    except Exception as error:  # each library raises errors of its own
        raise ValueError(
            f"{name} must be an array on the CPU that NumPy can read by DLPack. {error}"
        ) from error


def as_floats(value: npt.NDArray[Any]) -> Floats:
    """An array as the library reads it.

    Args:
      value: of any numeric type and order.

    Returns:
      The same array if it is contiguous, aligned and float32, else a copy.
    """
    floats = np.ascontiguousarray(value, np.float32)
    return floats if floats.flags.aligned else floats.copy()


def pointer(array: npt.NDArray[Any]) -> int:
    """The address of the first element of an array.

    Args:
      array: contiguous. It must live as long as the address is used.

    Returns:
      The address.
    """
    address: int = array.__array_interface__["data"][0]
    return address


def checked_out(out: Any, shape: tuple[int, ...], x: npt.NDArray[Any] | None) -> Floats:
    """Checks the argument out.

    Args:
      out: the argument; None: a new array.
      shape: of the output.
      x: the input, whose memory must be another one; None: it may be the same.

    Returns:
      float32, contiguous, aligned, of this shape.

    Raises:
      TypeError: out is not a NumPy array of type float32.
      ValueError: out has another shape, is not contiguous, is not aligned, cannot be written to
        or overlaps x.
    """
    if out is None:
        return np.empty(shape, np.float32)
    if not isinstance(out, np.ndarray) or out.dtype != np.float32 or not out.dtype.isnative:
        got = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        raise TypeError(f"out must be a NumPy array of type float32. Received: {got}")
    if out.shape != shape:
        raise ValueError(f"out must have the shape {shape}. Received: {out.shape}")
    if not out.flags.carray:
        raise ValueError("out must be C-contiguous, aligned and writeable")
    if x is not None and np.may_share_memory(out, x):
        raise ValueError("out must not share memory with x")
    return out
