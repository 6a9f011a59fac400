"""Operators of arrays of equal elements, and of indices of an input.

A session has no negative indices. So a comparison of indices with 0 is false everywhere, and what a
model computes for negative ones is not read.
"""

from __future__ import annotations

import numpy as np

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference.from_onnx.values import Array, Call, Filled, Operand, Shifted, Size
from tf_lstm_ops.inference.tracing.axes import Traced
from tf_lstm_ops.onnx_graph.folding import evaluate

_OF_INDICES = ("Less", "Add", "Mul")


def computed(call: Call, moves: bool) -> list[Operand] | None:
    """The outputs of a node that makes or reads an array of equal elements.

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
    if kind in ("ConstantOfShape", "Expand"):
        return _made(call)
    if kind == "Where" and isinstance(first, Filled):
        return [operands[1] if first.value else operands[2]]
    if kind in _OF_INDICES and any(isinstance(x, Traced) and not x.is_float for x in operands):
        return [_of_indices(kind, operands[0], operands[1])]
    if moves and isinstance(first, Filled):
        call.attributes.ignore()
        return [Filled(first.value)] * len(call.used)
    if kind == "Cast" and isinstance(first, Shifted):
        return [first]
    every = [each for each in operands if isinstance(each, Filled)]
    if not every or len(every) < len(operands):
        return None
    values = [each.value for each in every]
    if kind == "Concat":
        call.attributes.ignore()
        return [Filled(values[0])] if len({value.item() for value in values}) == 1 else None
    found = evaluate(call.node, values, call.opset)
    if found is None:
        return None
    call.attributes.ignore()  # evaluate has read them
    sizes = every[0].sizes if len(every) == 1 else None
    return [Filled(each, sizes) for each in found]


def _made(call: Call) -> list[Operand] | None:
    """An array of sizes that a call decides, or that one element fills."""
    is_expand = call.node.op_type == "Expand"
    x = call.operand(0)
    if isinstance(x, Traced):
        return None
    sizes = tuple(call.sizes(int(is_expand), "shape"))
    if not is_expand:
        if not any(isinstance(size, Size) for size in sizes):
            return None
        value = np.ravel(call.attributes.get("value", np.zeros(1, np.float32)))[0]
        return [Filled(np.array(value), sizes)]
    if isinstance(x, Filled):
        return [Filled(x.value)]
    if not isinstance(x, np.ndarray) or not x.size or not _is_equal(x):
        return None
    # An array of one element has the sizes of the target.
    is_known = x.size == 1 and x.ndim <= len(sizes)
    return [Filled(x.ravel()[:1].reshape(()), sizes if is_known else None)]


def _is_equal(x: Array) -> bool:
    """Whether all elements are equal."""
    return x.size == 1 or (x.dtype != object and bool((x == x.ravel()[0]).all()))


def _of_indices(kind: str, first: Operand, second: Operand) -> Operand:
    """A comparison, sum or product of indices and numbers."""
    if kind == "Less":
        if isinstance(first, Traced) and _is(second, 0):
            return Filled(np.array(False))
        refuse("it computes with integers of an input")
    for one, other in ((first, second), (second, first)):
        if _is(one, 0):
            return other if kind == "Add" else Filled(np.array(0))
        if kind == "Mul" and _is(one, 1):
            return other
    if kind == "Add":
        return Shifted()
    refuse("it computes with integers of an input")


def _is(operand: Operand, number: int) -> bool:
    """Whether an operand is a number everywhere."""
    array = operand.value if isinstance(operand, Filled) else operand
    is_one = isinstance(array, np.ndarray) and array.size == 1 and array.dtype != object
    return is_one and array.item() == number  # type: ignore[union-attr]
