"""Operators of indices, with which exported models let negative ones count from the end.

A session has no negative indices. So a comparison with 0 is false everywhere, and what a model
computes for negative ones is not read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference.from_onnx.values import Call, Filled, Operand, Shifted, cast
from tf_lstm_ops.inference.tracing.axes import Traced

_INTEGERS = (6, 7)  # the numbers of ONNX's types
_OPERATORS = ("Less", "Add", "Mul", "Where", "Not", "Cast")


def is_of_indices(call: Call) -> bool:
    """Whether a node computes with indices.

    Args:
      call: the node.

    Returns:
      True for operands that are integers of an input, or were made of them.
    """
    indices = [isinstance(each, Traced) and not each.is_float for each in call.operands]
    made = [isinstance(each, Filled | Shifted) for each in call.operands]
    return call.node.op_type in _OPERATORS and (any(indices) or all(made))


def computed(call: Call) -> Sequence[Operand]:
    """The output of such a node.

    Args:
      call: the node.

    Returns:
      What it stands for.

    Raises:
      Refused: a session does not compute it.
    """
    kind, operands = call.node.op_type, [*call.operands]
    first = operands[0]
    if kind == "Cast":
        return [_cast(first, int(call.attributes.get("to", 0)))]
    if kind == "Not" and isinstance(first, Filled):
        return [dataclasses.replace(first, value=float(not first.value))]
    if kind == "Less" and isinstance(first, Traced) and _is(operands[1], 0):
        return [Filled(0.0)]
    if kind == "Where" and isinstance(first, Filled):
        return [operands[1] if first.value else operands[2]]
    if kind in ("Add", "Mul"):
        return [_arithmetic(kind, operands)]
    refuse("it computes with integers of an input")


def _cast(operand: Operand, to: int) -> Operand:
    if isinstance(operand, Filled):
        return cast(operand, to)
    if to not in _INTEGERS:
        refuse("it converts numbers to another kind")
    return operand


def _arithmetic(kind: str, operands: Sequence[Operand]) -> Operand:
    """A sum or product of indices and numbers."""
    for one, other in (operands, operands[::-1]):
        if _is(one, 0):
            return other if kind == "Add" else Filled(0.0)
        if kind == "Mul" and _is(one, 1):
            return other
    if kind == "Add":
        return Shifted()
    refuse("it computes with integers of an input")


def _is(operand: Operand, number: int) -> bool:
    """Whether an operand is a number everywhere."""
    if isinstance(operand, Filled):
        return operand.value == number
    return isinstance(operand, np.ndarray) and operand.size == 1 and operand.item() == number
