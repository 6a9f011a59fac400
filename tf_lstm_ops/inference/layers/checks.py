"""Checks of the arguments of layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops.inference import arrays
from tf_lstm_ops.inference.arrays import Floats


def weight(name: str, value: Any, shape: Sequence[int | None]) -> Floats:
    """A weight as float32.

    Args:
      name: of the argument.
      value: what `arrays.as_array` takes.
      shape: the sizes that it must have; None: any.

    Returns:
      A copy.

    Raises:
      ValueError: the value has another shape, or NumPy cannot read it.
      TypeError: it has no real numbers.
    """
    found = np.array(arrays.as_array(name, value), np.float32)
    fits = found.ndim == len(shape) and all(
        wanted in (None, size) for wanted, size in zip(shape, found.shape, strict=True)
    )
    if not fits or 0 in found.shape:
        text = ", ".join("any" if size is None else str(size) for size in shape)
        raise ValueError(f"{name} must have the shape [{text}]. Received: {found.shape}")
    return found


def size(name: str, value: Any, least: int = 1) -> int:
    """An integer argument.

    Args:
      name: of the argument.
      value: an integer; also a tuple or list of one, as Keras keeps it.
      least: the smallest value.

    Returns:
      The integer.

    Raises:
      ValueError: it is too small.
      TypeError: it is no integer.
    """
    found = integer(name, value)
    if found < least:
        raise ValueError(f"{name} must be {least} or more. Received: {name}={found}")
    return found


def integer(name: str, value: Any) -> int:
    """An integer argument of any size.

    Args:
      name: of the argument.
      value: as of `size`.

    Returns:
      The integer.

    Raises:
      TypeError: it is no integer.
    """
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer. Received: {name}={value!r}")
    return int(value)


def choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """An argument with few values.

    Args:
      name: of the argument.
      value: its value.
      choices: what it may be.

    Returns:
      The value.

    Raises:
      ValueError: it is another one.
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {[*choices]}. Received: {name}={value!r}")
    return value


def pair(name: str, value: Any) -> tuple[int, int]:
    """An argument that is two integers, or one for both.

    Args:
      name: of the argument.
      value: an integer, not negative, or two of them.

    Returns:
      The two integers.

    Raises:
      ValueError: one is negative, or there are not two.
      TypeError: one is no integer.
    """
    if not isinstance(value, list | tuple) or len(value) == 1:
        value = (value,) * 2
    if len(value) != 2:
        raise ValueError(f"{name} must be one integer or two. Received: {name}={value!r}")
    first, second = value
    return size(name, first, 0), size(name, second, 0)
