"""What graphs compute with a mask, as expressions: an operator, its attributes and its operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops.onnx_graph.packing import FLOAT, Builder, Packing

Text = tuple[Any, ...]
MASK: Text = ("mask",)
X: Text = ("x",)
OUTPUT, INITIAL = "output", "initial"  # of a recurrent node, before a number
IS_ZERO, IS_NUMBER = ("index is 0",), ("feature is the number",)
TIME: Text = ("number of steps",)
_SIZES = ("sizes",)
# Attributes with these values have no effect, also where an operator does not have them.
_DEFAULTS = {"reverse": 0, "exclusive": 0, "largest": 1, "sorted": 1, "keepdims": 1, "saturate": 1}


class _Texts(Builder):
    """Makes texts instead of nodes."""

    def constant(self, value: Any) -> Text:
        array = np.asarray(value)
        return ("constant", array.dtype.str, array.shape, array.tobytes())

    def add(
        self, kind: str, inputs: Sequence[Any], dtype: Any = None, output: int = 0, **given: Any
    ) -> Text:
        if kind == "Shape":
            return _SIZES
        if kind == "Slice" and inputs[0] == _SIZES:
            return TIME
        values = {n: tuple(v) if isinstance(v, list) else v for n, v in given.items()}
        own = {name: value for name, value in values.items() if _DEFAULTS.get(name) != value}
        if kind == "ReduceSum" and len(inputs) > 1:
            own.pop("noop_with_empty_axes", None)
        found = (kind, output, *sorted(own.items()), *inputs)
        return _MASKS.get(found, found)


_MASKS: dict[Text, Text] = {}  # texts that are masks, or masks [B, T, 1]
BUILD = _Texts()
_NO, _COLUMN = BUILD.constant(np.float32(0)), BUILD.unsqueeze(MASK, 2)


def _cast(text: Text) -> Text:
    return BUILD.add("Cast", [text], to=FLOAT)


def _is_any(keepdims: int) -> Text:
    differs = _cast(BUILD.add("Not", [IS_NUMBER]))
    count = BUILD.add("ReduceSum", [differs, BUILD.integers(-1)], keepdims=keepdims)
    return BUILD.add("Greater", [count, _NO])


_MASKS |= {BUILD.add("Not", [IS_ZERO]): MASK, _is_any(0): MASK, _is_any(1): _COLUMN}


def _table() -> dict[Text, tuple[Any, ...]]:
    """The texts of what a session computes: their names, the direction, and which output it is."""
    product = BUILD.add("Mul", [_cast(_COLUMN), X])
    zero = BUILD.add("Mul", [_NO, _cast(BUILD.add("Not", [_COLUMN]))])
    chosen = BUILD.add("Add", [product, zero])
    sums = [
        BUILD.add("ReduceSum", [text, BUILD.integers(1)], keepdims=0)
        for text in (chosen, _cast(_COLUMN))
    ]
    found: dict[Text, tuple[Any, ...]] = {
        chosen: ("masked",),
        BUILD.add("Div", sums): ("mean",),
    }
    y, final_c = (OUTPUT, 0), (OUTPUT, 2)
    for backwards in (False, True):
        packing = Packing(BUILD, MASK, backwards)
        found |= {packing.pack(X): ("packed", backwards), packing.lengths: ("lengths",)}
        for zero_output in (False, True):
            found[packing.sequence(y, zero_output)] = ("sequence", backwards, zero_output)
            direction = backwards if zero_output else None
            found[packing.last(y, zero_output)] = ("last", direction, zero_output)
        states = packing.states([y, final_c], [(INITIAL, 0), (INITIAL, 1)])
        found |= {text: ("state", None, k) for k, text in enumerate(states)}
    return found


TABLE = _table()
