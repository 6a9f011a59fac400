"""Operators of the sizes of axes, from which exported models compute the targets of Reshape."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference.from_onnx.values import (
    Array,
    Call,
    Filled,
    Function,
    Operand,
    Sizes,
)
from tf_lstm_ops.inference.tracing.axes import Factor, Product, settled, size_of

# The numbers of ONNX's types that have all sizes up to 2**24, of more no session has arrays.
_EXACT = (1, 6, 7, 11)
_MOST = 64  # sizes of one array


def _known(sizes: Sequence[int | Product], is_scalar: bool = False) -> Sizes | Array:
    """Sizes, as an array where all are known."""
    if len(sizes) > _MOST:
        refuse(f"it makes {len(sizes)} sizes, more than an array has axes")
    if all(isinstance(size, int) for size in sizes):
        return np.array(sizes[0] if is_scalar else sizes, np.int64)
    return Sizes(tuple(sizes), is_scalar)


def _of(call: Call, index: int = 0) -> Sizes:
    """An operand as sizes."""
    found = call.operand(index)
    if isinstance(found, np.ndarray) and found.ndim < 2 and found.dtype.kind in "iu":
        return Sizes(tuple(map(int, found.ravel())), found.ndim == 0)
    if not isinstance(found, Sizes):
        refuse("it mixes sizes of axes with other arrays")
    return found


def shape(call: Call) -> list[Operand]:
    """The sizes of the axes of an array.

    Args:
      call: the node.

    Returns:
      The sizes.
    """
    axes = call.traced().axes
    start = int(call.attributes.get("start", 0))
    end = call.attributes.get("end")
    sizes = [product if size_of(product) is None else size_of(product) for product in axes]
    return [_known(sizes[slice(start, end)])]  # type: ignore[arg-type]


def _gather(call: Call) -> list[Operand]:
    index = call.whole_numbers(1, "index")
    call.axis(1, 0)
    sizes = _of(call).sizes
    if index.ndim > 1 or any(not -len(sizes) <= k < len(sizes) for k in index.ravel()):
        refuse(f"it takes the sizes of axes {index.tolist()}, and there are {len(sizes)}")
    return [_known([sizes[k] for k in index.ravel()], index.ndim == 0)]


def _slice(call: Call) -> list[Operand]:
    starts, ends = call.integers(1, "starts"), call.integers(2, "ends")
    steps = call.integers(4, "steps") or [1]
    axes = call.integers(3, "axes") or [0]
    if starts is None or ends is None or len(starts) != 1 or axes not in ([0], [-1]):
        refuse("its bounds are not those of one axis")
    return [_known(_of(call).sizes[starts[0] : ends[0] : steps[0]])]


def _concat(call: Call) -> list[Operand]:
    parts = [_of(call, k).sizes for k in range(len(call.operands))]
    call.axis(1, 0)
    return [_known([size for part in parts for size in part])]


def _vector(call: Call) -> list[Operand]:
    return [dataclasses.replace(_of(call), is_scalar=False)]


def _scalar(call: Call) -> list[Operand]:
    return [dataclasses.replace(_of(call), is_scalar=len(_of(call).sizes) == 1)]


def _same(call: Call) -> list[Operand]:
    return [call.operand(0)]


def _cast(call: Call) -> list[Operand]:
    if int(call.attributes.get("to", 0)) not in _EXACT:
        refuse("it converts sizes to a type that does not have all of them")
    return [call.operand(0)]


def _product(call: Call) -> list[Operand]:
    """Products of sizes; of unknown ones their factors are joined."""
    first, second = _of(call, 0), _of(call, 1)
    if len(first.sizes) != 1 or len(second.sizes) != 1:
        refuse("it multiplies several sizes of the call")
    sizes = [first.sizes[0], second.sizes[0]]
    return [_known([_times(sizes)], first.is_scalar and second.is_scalar)]


def _times(sizes: Sequence[int | Product]) -> int | Product:
    """A product of sizes."""
    number = math.prod(each for each in sizes if isinstance(each, int))
    factors = tuple(f for each in sizes if isinstance(each, tuple) for f in each)
    if not factors:
        return number
    if len(factors) > _MOST:
        refuse(f"it multiplies {len(factors)} sizes, more than an array has axes")
    if number < 1:
        refuse(f"it multiplies a size of the call by {number}")
    return factors if number == 1 else (*factors, Factor(number))


def _split(call: Call) -> list[Operand]:
    sizes = _of(call).sizes
    if len(sizes) != len(call.used):
        refuse("it divides sizes into other parts than single ones")
    return [_known([each]) for each in sizes]


def _whole_product(call: Call) -> list[Operand]:
    """The product of all sizes."""
    return [_known([_times(_of(call).sizes)], not call.flag("keepdims", True))]


def size(call: Call) -> list[Operand]:
    """The number of elements of an array.

    Args:
      call: the node.

    Returns:
      The sizes.
    """
    sizes = call.operand(0)
    if isinstance(sizes, Sizes):
        return [np.array(len(sizes.sizes))]
    whole = tuple(factor for product in call.traced().axes for factor in product)
    known = size_of(whole)
    return [_known([whole if known is None else known], is_scalar=True)]


def settled_array(operand: Operand) -> Operand:
    """Sizes as an array, where the file has them.

    Args:
      operand: sizes, or anything else.

    Returns:
      The array; what is not known is as it was.
    """
    if not isinstance(operand, Sizes):
        return operand
    numbers = [each if isinstance(each, int) else settled(each) for each in operand.sizes]
    if None in numbers:
        return operand
    return np.array(numbers[0] if operand.is_scalar else numbers, np.int64)


def _comparison(call: Call) -> list[Operand]:
    """Whether sizes are numbers. A size that a model has is then the only one."""
    numbers = []
    for k in range(len(call.operands)):
        sizes = _of(call, k).sizes
        numbers.append([each if isinstance(each, int) else settled(each) for each in sizes])
    unknown = any(None in each for each in numbers)
    if unknown and call.node.op_type == "Equal" and [0] in numbers:
        return [np.array(False)]  # a program asks whether there are any elements
    if unknown:
        refuse(
            "it compares a size that a call decides. Pass shapes={name: sizes} with sizes of the "
            "inputs"
        )
    functions = {"Equal": np.equal, "Greater": np.greater, "Less": np.less}
    found = functions[call.node.op_type](*map(np.array, numbers))
    is_scalar = all(_of(call, k).is_scalar for k in range(len(call.operands)))
    return [found.reshape(()) if is_scalar else found]


def _filled(call: Call) -> list[Operand]:
    value = call.attributes.get("value")
    return [Filled(0.0 if value is None else float(np.ravel(value)[0]), _of(call).sizes)]


# Operators with a `Sizes` among their operands.
FUNCTIONS: dict[str, Function] = {
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Unsqueeze": _vector,
    "Squeeze": _scalar,
    "Reshape": _vector,
    "Cast": _cast,
    "Identity": _same,
    "Mul": _product,
    "Size": size,
    "Split": _split,
    "ReduceProd": _whole_product,
    **dict.fromkeys(("Equal", "Greater", "Less"), _comparison),
    "ConstantOfShape": _filled,
}
