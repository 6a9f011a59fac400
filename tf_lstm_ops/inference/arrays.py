"""The arrays of calls: conversion of inputs, checks of outputs, pointers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def as_array(name: str, value: Any) -> npt.NDArray[Any]:
    """The array of an argument.

    Args:
      name: of the argument.
      value: a NumPy array, or what np.asarray takes; else an object with ``__dlpack__`` on the CPU.

    Returns:
      The array, of real numbers. It shares memory with `value` where NumPy does.

    Raises:
      ValueError: NumPy cannot read the value, for instance because it is on a GPU.
      TypeError: the elements are not real numbers, or some are masked.
    """
    if not isinstance(value, np.ndarray):
        value = _imported(name, value)
    if type(value) is not np.ndarray and np.ma.is_masked(value):
        raise TypeError(
            f"{name} must have no masked elements. Received: a numpy.ma.MaskedArray with some. "
            "Fill them: value.filled(number)"
        )
    if not _is_real(value.dtype):
        raise TypeError(f"{name} must be an array of real numbers. Received: dtype {value.dtype}")
    return value


def _is_real(dtype: np.dtype[Any]) -> bool:
    """Also of the types of ml_dtypes, such as bfloat16. Float32 holds each of their numbers."""
    is_extension = dtype.kind == "V" and dtype.type is not np.void
    return dtype.kind in "fiub" or (is_extension and np.can_cast(dtype, np.float32))


def _imported(name: str, value: Any) -> npt.NDArray[Any]:
    # NumPy first: DLPack cannot say that a tensor is a negated view, and TensorFlow ends the
    # process where a tensor's type is none of DLPack's.
    is_only_dlpack = hasattr(value, "__dlpack__") and not hasattr(value, "__array__")
    try:
        return np.from_dlpack(value) if is_only_dlpack else np.asanyarray(_readable(value))
    except Exception as error:  # each library raises errors of its own
        raise ValueError(
            f"{name} must be an array on the CPU that NumPy can read. {error}"
        ) from error


def _readable(value: Any) -> Any:
    """A tensor of PyTorch or TensorFlow as NumPy can read it; other values as they are."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        if value.layout is torch.strided and value.numel() and not value.data_ptr():
            # On the device meta, or inside of torch.func.functionalize, which NumPy does not see.
            raise ValueError("The tensor has no memory.")
        if value.is_floating_point() and value.dtype not in (torch.float32, torch.float64):
            return value.to(torch.float32)  # NumPy has no bfloat16
        return value.resolve_neg()
    if getattr(getattr(value, "dtype", None), "is_quantized", False) is True:
        raise ValueError(f"It is quantized: {value.dtype}.")
    return value


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


def checked_out(
    out: Any,
    shape: tuple[int, ...],
    others: Sequence[npt.NDArray[Any]] = (),
    name: str = "out",
) -> Floats:
    """Checks the argument out.

    Args:
      out: the argument.
      shape: of the output.
      others: arrays whose memory must be another one.
      name: how messages call it.

    Returns:
      float32, contiguous, aligned, of this shape.

    Raises:
      TypeError: out is not a NumPy array of type float32.
      ValueError: out has another shape, is not contiguous, is not aligned, cannot be written to
        or overlaps x.
    """
    if not isinstance(out, np.ndarray) or out.dtype != np.float32 or not out.dtype.isnative:
        got = out.dtype if isinstance(out, np.ndarray) else type(out).__name__
        raise TypeError(f"{name} must be a NumPy array of type float32. Received: {got}")
    if out.shape != shape:
        raise ValueError(f"{name} must have the shape {shape}. Received: {out.shape}")
    if not out.flags.carray:
        raise ValueError(f"{name} must be C-contiguous, aligned and writeable")
    if any(np.may_share_memory(out, other) for other in others):
        raise ValueError(f"{name} must not share memory with x or another output")
    return out
