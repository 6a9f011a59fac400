"""Arrays of any framework, their gates and their shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def as_array(value: Any) -> Array:
    """A copy of an array, tensor or variable of any framework."""
    if hasattr(value, "detach"):  # PyTorch: out of the graph, off the device
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # which it cannot give to NumPy
            import ml_dtypes

            return value.float().numpy().astype(ml_dtypes.bfloat16)
    return np.array(value.numpy() if hasattr(value, "numpy") else value)


def reordered(array: Array, source: str, target: str) -> Array:
    """The blocks of the last axis, one a gate, moved from one order of the gates to another."""
    blocks = dict(zip(source, np.split(array, len(source), axis=-1), strict=True))
    return np.concatenate([blocks[gate] for gate in target], axis=-1)


def require(condition: Any, message: str) -> None:
    if not condition:
        raise ValueError(message)


def require_shape(name: str, array: Array, *shape: int | str) -> None:
    """Letters in `shape` stand for sizes that may be any."""
    fits = array.ndim == len(shape) and all(
        isinstance(want, str) or want == size for want, size in zip(shape, array.shape, strict=True)
    )
    expected = str(shape).replace("'", "")
    require(fits, f"{name} must be {expected} but is {array.shape}")
