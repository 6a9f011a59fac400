"""Operators of filled arrays, whose elements repeat, and of indices of an input.

A session has no negative indices. So a comparison of indices with 0 is false everywhere, and what a
model computes for negative ones is not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference.from_onnx.values import (
    Array,
    Call,
    Filled,
    Operand,
    Shifted,
    Size,
    Sizes,
    is_of,
    kind_of,
    of_axis,
)
from tf_lstm_ops.inference.tracing.alignment import of_rank
from tf_lstm_ops.inference.tracing.axes import Traced
from tf_lstm_ops.onnx_graph.folding import evaluate

_OF_INDICES = ("Less", "Add", "Mul")
_ARITHMETIC = ("Add", "Sub", "Mul", "Div")
# Operators of which one element of the operands makes each element of the result.
_OF_ELEMENTS = (*_ARITHMETIC, "Cast", "Equal", "Greater", "Identity", "Less", "Not")
# Operators that repeat elements, and the operand that says how often.
_MADE_BY = {"ConstantOfShape": 0, "Expand": 1, "Tile": 1}
# Numbers that stand for sizes which a call decides. Two results tell them from others.
_STAND_INS = ((2, 3, 5, 7), (11, 13, 17, 19))


def computed(call: Call, moves: bool) -> list[Operand] | None:
    """The outputs of a node that makes or reads a filled array.

    Args:
      call: the node.
      moves: whether the operator only moves elements of its first operand.

    Returns:
      What they stand for; None for another node.

    Raises:
      Refused: a session does not compute it.
    """
    kind, operands = call.node.op_type, call.operands
    first = call.operand(0)
    if kind in _MADE_BY and not isinstance(first, Traced):
        return _made(call, kind)
    if kind == "Where" and isinstance(first, Filled):
        if not first.is_equal:
            return None
        return [_repeated(operands[1 if first.value.all() else 2], _together(operands))]
    if kind in _OF_INDICES and any(map(_is_index, operands)):
        return [_of_indices(kind, operands[0], operands[1])]
    if kind == "Cast" and isinstance(first, Shifted):
        return [first]
    every = [each for each in operands if isinstance(each, Filled)]
    if (moves and isinstance(first, Filled)) or (kind == "Concat" and len(every) == len(operands)):
        return _moved(call)
    if every and kind in _ARITHMETIC and all(map(_is_repeated, operands)):
        return _moved(call)
    are_equal = len(every) == len(operands) and all(each.is_equal for each in every)
    if not every or not are_equal or kind not in _OF_ELEMENTS:
        return None
    element = [each.value.reshape(()) for each in every]
    found = evaluate(call.node, element, call.opset, call.budget)
    call.attributes.ignore()  # evaluate has read them
    return [Filled(each, _together(every)) for each in found or ()]


def _sizes_of(operand: Operand) -> Sizes | None:
    """The sizes of the axes of an operand; None: they are not known."""
    if isinstance(operand, Traced):
        return tuple(map(of_axis, operand.axes))
    if isinstance(operand, np.ndarray):
        return operand.shape
    return operand.sizes if isinstance(operand, Filled | Shifted) else None


def _together(operands: Sequence[Operand]) -> Sizes | None:
    """The sizes of the result of an operator that repeats its operands as NumPy does."""
    every = [*map(_sizes_of, operands)]
    known = [sizes for sizes in every if sizes is not None]
    if len(known) < len(every):
        return None
    rank = max(map(len, known))
    axes = zip(*((1,) * (rank - len(sizes)) + sizes for sizes in known), strict=True)
    return tuple(map(_larger, axes))


def _larger(sizes: Sequence[int | Size | None]) -> int | Size | None:
    """The size of an axis of a result, by those of the operands."""
    found: int | Size | None = 1
    for size in sizes:
        if size is None or _is_one(size):
            found = None if size is None and found is not None and _is_one(found) else found
        elif found is None or _is_one(found):
            found = size
        elif not _is_same(size, found):
            refuse("its operands have different sizes, or one is a size of the call")
    return found


def _is_one(size: int | Size) -> bool:
    return not isinstance(size, Size) and size == 1


def _is_same(one: int | Size | None, other: int | Size | None) -> bool:
    if isinstance(one, Size) and isinstance(other, Size):
        return one.product == other.product
    return not isinstance(one, Size) and not isinstance(other, Size) and one == other


def _repeated(operand: Operand, sizes: Sizes | None) -> Operand:
    """An operand as the result of an operator, which has the sizes of all its operands."""
    own = _sizes_of(operand)
    if own is None or sizes is None:
        refuse("the sizes of its operands are not known")
    more = len(sizes) - len(own)
    if isinstance(operand, np.ndarray | Filled):
        value = operand.value if isinstance(operand, Filled) else operand
        if not more and all(map(_is_same, own, sizes)):
            return operand
        if value.dtype == object:
            refuse("it repeats sizes of the call")
        shape = (1,) * (len(sizes) - value.ndim) + value.shape if value.ndim else ()
        return Filled(value.reshape(shape), sizes)
    if not all(map(_is_same, (1,) * more + own, sizes)):
        refuse(f"it repeats an operand that is {kind_of(operand)}")
    return of_rank(operand, len(sizes)) if isinstance(operand, Traced) else operand


def _is_repeated(operand: Operand) -> bool:
    """Whether it is a constant, of known sizes where it is repeated."""
    if isinstance(operand, Filled):
        return operand.sizes is not None and None not in map(_plain, operand.sizes)
    return isinstance(operand, np.ndarray) and operand.dtype != object


def _is_index(operand: Operand) -> bool:
    is_given = isinstance(operand, Traced) and not operand.is_float
    return is_given or isinstance(operand, Shifted)


def _made(call: Call, kind: str) -> list[Operand] | None:
    """An array that is repeated along axes, of sizes that a call may decide."""
    sizes = call.sizes(_MADE_BY[kind], "shape")
    if kind == "ConstantOfShape":
        if not any(isinstance(size, Size) for size in sizes):
            return None
        value = np.ravel(call.attributes.get("value", np.zeros(1, np.float32)))[0]
        return [Filled(np.array(value), tuple(sizes))]
    x = call.operand(0)
    if isinstance(x, Filled) and x.is_equal and kind == "Expand":
        return [Filled(x.value)]
    if not isinstance(x, np.ndarray) or not x.size:
        return None
    if kind == "Tile":
        return _tiled(x, sizes)
    if x.dtype != object and x.size > 1 and (x == x.ravel()[0]).all():
        return [Filled(np.array(x.ravel()[0]))]
    rank = max(x.ndim, len(sizes))
    shape = (1,) * (rank - x.ndim) + x.shape
    wanted = [1] * (rank - len(sizes)) + sizes
    pairs = [*zip(shape, wanted, strict=True)]
    if not all(n == 1 or (not isinstance(size, Size) and size in (1, n)) for n, size in pairs):
        return None
    value = x.reshape(shape if x.size > 1 else ())
    return [Filled(value, tuple(size if n == 1 else n for n, size in pairs))]


def _tiled(x: Array, repeats: Sequence[int | Size]) -> list[Operand] | None:
    """An array that is repeated along axes of size 1."""
    if len(repeats) != x.ndim:
        return None
    pairs = [*zip(x.shape, repeats, strict=True)]
    if not all(n == 1 or (not isinstance(times, Size) and times == 1) for n, times in pairs):
        return None
    return [Filled(x, tuple(times if n == 1 else n for n, times in pairs))]


def _moved(call: Call) -> list[Operand] | None:
    """Filled arrays whose elements move, or are combined with constants.

    Their sizes are traced by numbers that stand for them.
    """
    every = [each for each in call.operands if isinstance(each, Filled)]
    if any(each.sizes is None or None in map(_plain, each.sizes) for each in every):
        call.attributes.ignore()
        values = {each.value.item() if each.is_equal else None for each in every}
        if len(values) > 1 or None in values:
            refuse("it moves elements of an array whose sizes are not known")
        return [Filled(every[0].value)] * len(call.used)
    found: list[Sequence[Array]] = []
    marks: dict[tuple[int, int], Size] = {}
    for stand_ins in _STAND_INS:
        arrays = [
            np.broadcast_to(each.value, _numbers(each, stand_ins, marks))
            if isinstance(each, Filled)
            else each
            for each in call.operands
        ]
        results = evaluate(call.node, arrays, call.opset, call.budget)  # type: ignore[arg-type]
        if results is None:
            return None
        found.append(results)
    call.attributes.ignore()  # evaluate has read them
    return [_of_two(a, b, marks) for a, b in zip(*found, strict=True)]


def _plain(size: int | Size | None) -> int | None:
    return 0 if isinstance(size, Size) else size


def _numbers(
    filled: Filled, stand_ins: Sequence[int], marks: dict[tuple[int, int], Size]
) -> list[int]:
    """The sizes of an array, with numbers for those that a call decides."""
    found = []
    for size in filled.sizes or ():
        if not isinstance(size, Size):
            found.append(int(size or 0))
            continue
        known = next((key for key, other in marks.items() if is_of(other, size.product)), None)
        if known is None:
            if len(marks) == len(stand_ins):
                refuse("it has more sizes of the call than are followed")
            first, second = _STAND_INS
            known = first[len(marks)], second[len(marks)]
            marks[known] = size
        found.append(known[_STAND_INS.index(stand_ins)])
    return found


def _of_two(one: Array, other: Array, marks: Mapping[tuple[int, int], Size]) -> Filled:
    """The array of two results, whose sizes differ where a call decides them."""
    pairs = [*zip(one.shape, other.shape, strict=True)]
    if any(a != b and (a, b) not in marks for a, b in pairs):
        refuse("it divides or joins an axis whose size a call decides")
    sizes = tuple(a if a == b else marks[a, b] for a, b in pairs)
    first = tuple(slice(None) if a == b else slice(1) for a, b in pairs)
    return Filled(one[first], sizes)


def _of_indices(kind: str, first: Operand, second: Operand) -> Operand:
    """A comparison, sum or product of indices and numbers."""
    sizes = _together([first, second])
    if kind == "Less":
        if isinstance(first, Traced) and _is(second, 0):
            return Filled(np.array(False), sizes)
        refuse("it computes with integers of an input")
    for one, other in ((first, second), (second, first)):
        if _is(one, 0):
            return _repeated(other, sizes) if kind == "Add" else Filled(np.array(0), sizes)
        if kind == "Mul" and _is(one, 1):
            return _repeated(other, sizes)
    if kind == "Add":
        return Shifted(sizes)
    refuse("it computes with integers of an input")


def _is(operand: Operand, number: int) -> bool:
    """Whether an operand is a number everywhere."""
    array = operand.value if isinstance(operand, Filled) else operand
    is_one = isinstance(array, np.ndarray) and array.size == 1 and array.dtype != object
    return is_one and array.item() == number  # type: ignore[union-attr]
