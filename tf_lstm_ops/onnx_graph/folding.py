"""Computes nodes whose operands are constants.

An element of an array of objects may be a size of which only a call has the number. It moves as
others do, and has the operators that a size has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tf_lstm_ops._refusal import Refused
from tf_lstm_ops.onnx_graph import schemas, tensors
from tf_lstm_ops.onnx_graph.attributes import Attributes, label
from tf_lstm_ops.onnx_graph.budget import Budget
from tf_lstm_ops.onnx_graph.tensors import Array

if TYPE_CHECKING:
    import onnx

_MOST_SIZES = 64  # of one array: more than an array has axes
# The types to which a size may be cast: they have all sizes up to 2**24, the most that layers have.
_OF_SIZES = ("float32", "float64", "int32", "int64")


class Operands(tuple[Any, ...]):
    """The arrays of the inputs of a node; None for absent ones.

    Attributes:
      budget: counts the bytes of results.
      outputs: the number of outputs of the node.
    """

    budget: Budget
    outputs: int


Function = Callable[[Attributes, Operands], Array | list[Array] | None]


class _Fold(NamedTuple):
    """How a kind of node is computed.

    Attributes:
      function: of the attributes and operands; it returns None if only a call has the result.
      inputs: how many it must have.
      ignored: attributes without an effect.
    """

    function: Function
    inputs: int = 1
    ignored: tuple[str, ...] = ()


def evaluate(
    node: onnx.NodeProto,
    operands: Sequence[Array | None],
    opset: int,
    budget: Budget,
) -> list[Array] | None:
    """Computes a node.

    Args:
      node: the node.
      operands: the arrays of its inputs, in their order; None for an input that is absent, or that
        is no constant.
      opset: the version of the default domain.
      budget: counts the bytes of the result.

    Returns:
      The arrays of its outputs. They may share memory with the operands. None if this kind of node
      is not computed, or an operand is no constant.

    Raises:
      ValueError: the operands or attributes are wrong, or the result is too large. The text names
        the node.
    """
    if not folds(node):
        return None
    if any(name and array is None for name, array in zip(node.input, operands, strict=False)):
        return None
    fold = _FUNCTIONS[node.op_type]
    given = schemas.attributes_of(node, opset)
    own = Operands(operands)
    own.budget, own.outputs = budget, len(node.output)
    try:
        present = [array is not None for array in operands[: fold.inputs]]
        _require(
            sum(present) == fold.inputs, f"must have {fold.inputs} inputs but has {sum(present)}"
        )
        if node.op_type in ("Squeeze", "Unsqueeze") and opset >= 13:
            _require("axes" not in given, "has axes as an attribute, which ended with opset 13")
        for name, value in given.items():
            if name in _KINDS:
                items = value if isinstance(value, list) else []
                fits = isinstance(value, _KINDS[name]) and all(isinstance(x, int) for x in items)
                what = "list" if _KINDS[name] is list else "integer"
                _require(fits, f"the attribute {name} is no {what}")
        with np.errstate(all="ignore"):
            made = fold.function(given, own)
        if made is None:
            return None
        found = [*map(_plain, made)] if isinstance(made, list) else [_plain(made)]
        schemas.require_read(node, given, opset, fold.ignored)
        for array in found:
            if not any(x is not None and np.may_share_memory(x, array) for x in operands):
                own.budget.take(array.nbytes)
        return found
    except Refused:
        raise
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(f"{label(node)} cannot be computed: {error}") from error


def _plain(array: Any) -> Array:
    """An array of numbers, where all its elements are known."""
    array = np.asarray(array)
    if array.dtype != object:
        return array
    _require_few(array.size)
    elements = array.ravel()
    for kind, dtype in ((bool | np.bool_, "bool"), (int | np.integer, "int64")):
        if all(isinstance(each, kind) for each in elements):
            return array.astype(dtype)
    return array


def folds(node: onnx.NodeProto) -> bool:
    """Whether `evaluate` computes nodes of this kind.

    Args:
      node: the node.

    Returns:
      True if it does.
    """
    return node.op_type in _FUNCTIONS and node.domain in ("", "ai.onnx")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


def _require_small(operands: Operands, shape: Sequence[int], itemsize: int) -> None:
    operands.budget.require(math.prod(shape) * itemsize, f"the result {list(shape)}")


def _at(operands: Operands, k: int) -> Array | None:
    return operands[k] if k < len(operands) else None


def _array(operands: Operands, k: int) -> Array:
    array = _at(operands, k)
    if array is None:
        raise ValueError(f"input {k} is absent")
    return array


def _alike(arrays: Sequence[Array]) -> list[Array]:
    """Arrays of one type: integers with sizes become arrays of objects."""
    if all(array.dtype != object for array in arrays):
        return [*arrays]
    if any(array.dtype.kind not in "iuO" for array in arrays):
        raise Refused("it mixes sizes of axes with other arrays")
    for array in arrays:
        _require_few(array.size)
    return [array.astype(object) for array in arrays]


def _require_few(count: int) -> None:
    _require(count <= _MOST_SIZES, f"it makes {count} sizes, more than an array has axes")


def _ints(name: str, array: Array) -> list[int]:
    if array.dtype == object:
        raise Refused(f"its {name} is a size of the call, not a constant")
    _require(array.dtype.kind in "iu" and array.ndim <= 1, f"{name} must be a list of integers")
    _require(array.size <= 64, f"{name} has {array.size} numbers, more than an array has axes")
    return [int(x) for x in array.ravel()]


def _axes(given: Attributes, operands: Operands, k: int = 1) -> list[int] | None:
    if (operand := _at(operands, k)) is not None:
        return _ints("axes", operand)
    return list(given["axes"]) if "axes" in given else None


def _axis(axis: int, rank: int) -> int:
    _require(-rank <= axis < rank, f"there is no axis {axis} in an array of {rank} axes")
    return axis % rank


def _unique_axes(axes: list[int], rank: int) -> list[int]:
    found = [_axis(axis, rank) for axis in axes]
    _require(len(set(found)) == len(found), f"axes {axes} has an axis twice")
    return found


def _constant(given: Attributes, operands: Operands) -> Array:
    dtypes = {"value_float": "f4", "value_floats": "f4", "value_int": "i8", "value_ints": "i8"}
    names = [name for name in given if name.startswith(("value", "sparse_value"))]
    _require(len(names) == 1, f"must have one value but has {len(names)}")
    (name,) = names
    if name == "value" and isinstance(given[name], np.ndarray):
        return given[name]
    _require(name in dtypes, f"has {name}, which is not read")
    return np.array(given[name], dtypes[name])


def _unsqueeze(given: Attributes, operands: Operands) -> Array:
    x, axes = _array(operands, 0), _axes(given, operands)
    if axes is None:
        raise ValueError("axes are absent")
    _require(len(axes) + x.ndim <= 32, f"there are {len(axes)} axes")
    return np.expand_dims(x, tuple(_unique_axes(axes, x.ndim + len(axes))))


def _squeeze(given: Attributes, operands: Operands) -> Array:
    x, axes = _array(operands, 0), _axes(given, operands)
    return np.squeeze(x, None if axes is None else tuple(_unique_axes(axes, x.ndim)))


def _concat(given: Attributes, operands: Operands) -> Array:
    arrays = _alike([_array(operands, k) for k in range(len(operands))])
    _require("axis" in given, "the attribute axis is absent")
    axis = _axis(given["axis"], arrays[0].ndim)
    _require(len({a.dtype for a in arrays}) == 1, "the inputs have different types")
    _require_small(operands, [sum(a.size for a in arrays)], arrays[0].itemsize)
    return np.concatenate(arrays, axis)


def _cast(given: Attributes, operands: Operands) -> Array:
    dtype = tensors.dtype_of(given.get("to", 0))
    x = _array(operands, 0)
    if x.dtype == object:
        if dtype.name not in _OF_SIZES:
            raise Refused("it converts sizes to a type that does not have all of them")
        return x
    _require_small(operands, x.shape, dtype.itemsize)
    return x.astype(dtype)


def _reshape(given: Attributes, operands: Operands) -> Array:
    x, shape = _array(operands, 0), _ints("shape", _array(operands, 1))
    if not given.get("allowzero", 0):
        _require(0 not in shape[x.ndim :], f"shape {shape} copies an axis that is not there")
        shape = [size or x.shape[k] for k, size in enumerate(shape)]
    _require(all(size >= -1 for size in shape) and len(shape) <= 32, f"shape {shape} is none")
    if not x.flags.c_contiguous:  # else nothing is copied
        _require_small(operands, x.shape, x.itemsize)
    return x.reshape(shape)


def _slice(given: Attributes, operands: Operands) -> Array:
    x = _array(operands, 0)
    found: dict[str, list[int] | None] = {}
    for k, name in enumerate(("starts", "ends", "axes", "steps"), 1):
        operand = _at(operands, k)
        found[name] = given.get(name) if operand is None else _ints(name, operand)
    starts, ends = found["starts"], found["ends"]
    if starts is None or ends is None:
        raise ValueError("starts or ends are absent")
    axes = _unique_axes(found["axes"] or list(range(len(starts))), x.ndim)
    steps = found["steps"] or [1] * len(starts)
    parts = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        parts[axis] = _part(x.shape[axis], start, end, step)
    return x[tuple(parts)]


def _part(size: int, start: int, end: int, step: int) -> slice:
    start, end = (k + size if k < 0 else k for k in (start, end))
    if step > 0:
        return slice(max(start, 0), max(end, 0), step)
    _require(step != 0, "a step is 0")
    last = min(max(end, -1), size - 1)
    return slice(min(max(start, 0), size - 1), None if last < 0 else last, step)


def _gather(given: Attributes, operands: Operands) -> Array:
    x, indices = _array(operands, 0), _array(operands, 1)
    axis = _axis(given.get("axis", 0), x.ndim)
    _require(indices.dtype.kind in "iu", "the indices are no integers")
    _require_small(operands, [*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]], x.itemsize)
    return np.take(x, indices, axis)


def _shape(given: Attributes, operands: Operands) -> Array:
    sizes = _array(operands, 0).shape
    return np.array(sizes[given.get("start", 0) : given.get("end")], "int64")


def _split(given: Attributes, operands: Operands) -> list[Array]:
    x, lengths = _array(operands, 0), _at(operands, 1)
    axis, count = _axis(given.get("axis", 0), x.ndim), operands.outputs
    _require(given.get("num_outputs", count) == count, f"num_outputs is not {count}")
    length = -(-x.shape[axis] // count)
    own = given.get("split") if lengths is None else _ints("split", lengths)
    own = own or [min(length, x.shape[axis] - k * length) for k in range(count)]
    fits = len(own) == count and min(own) >= 0 and sum(own) == x.shape[axis]
    _require(fits, f"the parts {own} are not those of {x.shape[axis]} elements")
    return np.split(x, np.cumsum(own[:-1]), axis)


def _constant_of_shape(given: Attributes, operands: Operands) -> Array | None:
    value = np.asarray(given.get("value", np.zeros(1, "float32")))
    _require(value.size == 1, f"value must have 1 element but has {value.size}")
    if _array(operands, 0).dtype == object:
        return None
    shape = _ints("the shape", _array(operands, 0))
    _require(all(size >= 0 for size in shape) and len(shape) <= 32, f"the shape {shape} is none")
    _require_small(operands, shape, value.itemsize)
    return np.full(shape, value.ravel()[0], value.dtype)


def _arithmetic(function: Callable[..., Array]) -> Callable[[Attributes, Operands], Array]:
    def of(given: Attributes, operands: Operands) -> Array:
        a, b = _alike([_array(operands, 0), _array(operands, 1)])
        _require(a.dtype == b.dtype, f"the inputs have the types {a.dtype} and {b.dtype}")
        _require(a.dtype.kind != "b", "the inputs are no numbers")
        _require_small(operands, np.broadcast_shapes(a.shape, b.shape), a.itemsize)
        return function(a, b)

    return of


def _product(given: Attributes, operands: Operands) -> Array:
    x = _array(operands, 0)
    axes = _axes(given, operands)
    keepdims = bool(given.get("keepdims", 1))
    if not axes and given.get("noop_with_empty_axes", 0):
        return x
    return np.asarray(np.prod(x, None if axes is None else tuple(axes), x.dtype, keepdims=keepdims))


def _not(given: Attributes, operands: Operands) -> Array:
    x = _array(operands, 0)
    _require(x.dtype.kind == "b", "the input is not boolean")
    _require_small(operands, x.shape, x.itemsize)
    return ~x


def _where(given: Attributes, operands: Operands) -> Array:
    condition = _array(operands, 0)
    a, b = _alike([_array(operands, 1), _array(operands, 2)])
    _require(condition.dtype.kind == "b", "the condition is not boolean")
    _require(a.dtype == b.dtype, f"the inputs have the types {a.dtype} and {b.dtype}")
    shape = np.broadcast_shapes(condition.shape, a.shape, b.shape)
    _require_small(operands, shape, a.itemsize)
    return np.where(condition, a, b)


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind not in "iu":
        return a / b
    _require(bool(b.all()), "an integer is divided by 0")
    return a // b + ((a % b != 0) & ((a < 0) != (b < 0)))  # towards zero


def _dequantize(given: Attributes, operands: Operands) -> Array:
    x, scale, zero = _array(operands, 0), _array(operands, 1), _at(operands, 2)
    _require(not given.get("block_size", 0), "block_size is not 0, which is not read")
    _require(x.dtype.kind in "iu" and scale.dtype.kind == "f", "the types are none of this node")
    zero = np.zeros(scale.shape, x.dtype) if zero is None else zero
    _require(zero.dtype == x.dtype, f"the zero point is {zero.dtype}, not {x.dtype}")
    _require(zero.shape == scale.shape, f"the zero point is {zero.shape}, not {scale.shape}")
    wide = np.dtype("int64" if x.itemsize > 2 else "int32")
    _require_small(operands, x.shape, max(wide.itemsize, scale.itemsize))
    place = given.get("axis", 1)
    if scale.ndim:
        axis = _axis(place, x.ndim)
        fits = scale.ndim == 1 and len(scale) in (1, x.shape[axis])
        _require(fits, f"the scale {scale.shape} does not fit axis {axis} of {x.shape}")
        shape = [-1 if k == axis else 1 for k in range(x.ndim)]
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    steps = x.astype(wide)
    steps -= zero.astype(wide)
    found = steps.astype(scale.dtype)
    found *= scale
    return found


_FUNCTIONS: dict[str, _Fold] = {
    "Constant": _Fold(_constant, inputs=0),
    "Identity": _Fold(lambda given, operands: _array(operands, 0)),
    "Unsqueeze": _Fold(_unsqueeze),
    "Squeeze": _Fold(_squeeze),
    "Concat": _Fold(_concat),
    "Split": _Fold(_split),
    "Cast": _Fold(_cast, ignored=("saturate", "round_mode")),
    "Reshape": _Fold(_reshape, inputs=2),
    "Transpose": _Fold(
        lambda given, operands: np.transpose(_array(operands, 0), given.get("perm"))
    ),
    "Slice": _Fold(_slice),
    "Gather": _Fold(_gather, inputs=2),
    "Shape": _Fold(_shape),
    "Size": _Fold(lambda given, operands: np.array(_array(operands, 0).size, "int64")),
    "ConstantOfShape": _Fold(_constant_of_shape),
    "Equal": _Fold(_arithmetic(np.equal)),
    "Greater": _Fold(_arithmetic(np.greater)),
    "Less": _Fold(_arithmetic(np.less)),
    "Not": _Fold(_not),
    "Where": _Fold(_where, inputs=3),
    "ReduceProd": _Fold(_product),
    "Add": _Fold(_arithmetic(np.add), inputs=2),
    "Sub": _Fold(_arithmetic(np.subtract), inputs=2),
    "Mul": _Fold(_arithmetic(np.multiply), inputs=2),
    "Div": _Fold(_arithmetic(_divide), inputs=2),
    "DequantizeLinear": _Fold(_dequantize, inputs=2),
}
# Of the attributes of these nodes. Those of Constant are read by their names.
_KINDS: dict[str, type] = dict.fromkeys(
    ("allowzero", "axis", "block_size", "end", "num_outputs", "start", "to"), int
) | dict.fromkeys(("axes", "ends", "perm", "split", "starts"), list)
