"""Tensors of a file as NumPy arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tf_lstm_ops import _optional

if TYPE_CHECKING:
    import onnx

Array = npt.NDArray[Any]

# By the number of TensorProto.DataType: the dtype, and the field of a tensor without raw data.
_TYPES = {
    1: ("float32", "float_data"),
    2: ("uint8", "int32_data"),
    3: ("int8", "int32_data"),
    4: ("uint16", "int32_data"),
    5: ("int16", "int32_data"),
    6: ("int32", "int32_data"),
    7: ("int64", "int64_data"),
    9: ("bool", "int32_data"),
    10: ("float16", "int32_data"),  # its bits
    11: ("float64", "double_data"),
    12: ("uint32", "uint64_data"),
    13: ("uint64", "uint64_data"),
    16: ("bfloat16", "int32_data"),  # its bits
}
_LARGEST_RANK = 32  # of NumPy 1


def dtype_of(data_type: int) -> np.dtype[Any]:
    """The dtype of an element type.

    Args:
      data_type: a number of TensorProto.DataType.

    Returns:
      The dtype.

    Raises:
      ValueError: it is no number type that is read here.
    """
    if data_type not in _TYPES:
        raise ValueError(f"elements of the type {name_of(data_type)}, which are not read")
    name = _TYPES[data_type][0]
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def byte_size(tensor: onnx.TensorProto, where: str) -> int:
    """The size that the data of a tensor must have.

    Args:
      tensor: the tensor.
      where: what names it in messages.

    Returns:
      The number of bytes.

    Raises:
      ValueError: its element type is not read, or its sizes are none.
    """
    dims = list(tensor.dims)
    if len(dims) > _LARGEST_RANK:
        raise ValueError(f"{where} has {len(dims)} axes, more than {_LARGEST_RANK}")
    if any(size < 0 for size in dims):
        raise ValueError(f"{where} has the sizes {dims}, of which one is negative")
    try:
        return math.prod(dims) * dtype_of(tensor.data_type).itemsize
    except ValueError as error:
        raise ValueError(f"{where} has {error}") from error


def to_array(tensor: onnx.TensorProto, where: str) -> Array:
    """The array of a tensor.

    Args:
      tensor: the tensor, whose data is in it.
      where: what names it in messages.

    Returns:
      A read-only array.

    Raises:
      ValueError: its data is in another file, is of a type that is not read, or does not fit its
        sizes.
    """
    want = byte_size(tensor, where)
    if tensor.data_location == type(tensor).EXTERNAL:
        raise ValueError(f"{where} is in another file; pass the path of the ONNX file")
    if tensor.HasField("segment"):
        raise ValueError(f"{where} is a segment of a tensor, which is not read")
    dtype = dtype_of(tensor.data_type)
    if tensor.HasField("raw_data"):
        data = tensor.raw_data
        _require_size(where, len(data), want, "bytes")
        flat = np.frombuffer(data, dtype.newbyteorder("<") if dtype.isbuiltin else dtype)
    else:
        flat = _of_field(tensor, dtype)
        _require_size(where, flat.size, want // dtype.itemsize, "elements")
    try:
        array = flat.reshape(tuple(tensor.dims))
    except ValueError as error:  # sizes beside a zero
        raise ValueError(f"{where} has sizes that no array has: {error}") from error
    array.flags.writeable = False
    return array


def _require_size(where: str, size: int, want: int, unit: str) -> None:
    if size != want:
        raise ValueError(f"{where} must have {want} {unit} by its sizes but has {size}")


def _of_field(tensor: onnx.TensorProto, dtype: np.dtype[Any]) -> Array:
    values = getattr(tensor, _TYPES[tensor.data_type][1])
    if dtype.name in ("float16", "bfloat16"):
        return np.array(values, "int64").astype("uint16").view(dtype)
    wide = "uint64" if dtype.kind == "u" and dtype.itemsize > 2 else "int64"
    return np.array(values, dtype if dtype.kind == "f" else wide).astype(dtype)


def name_of(data_type: int) -> str:
    """The name of an element type.

    Args:
      data_type: a number of TensorProto.DataType.

    Returns:
      A name such as "FLOAT", or words with the number.
    """
    onnx = _optional.require("onnx", "an ONNX file", "onnx", "onnxruntime")
    known = onnx.TensorProto.DataType.items()
    return next((name for name, number in known if number == data_type), f"number {data_type}")
