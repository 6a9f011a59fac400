"""Definitions that all files of cases use: sizes, cases and random tensors."""

from __future__ import annotations

import functools
import pathlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

import tf_lstm_ops


class Shape(NamedTuple):
    time: int
    batch: int
    inputs: int
    units: int

    def __str__(self) -> str:
        return f"T{self.time} B{self.batch} I{self.inputs} H{self.units}"


# Cell sizes below, beside and at vector widths, each with another input size.
TAILS = tuple(
    Shape(time, batch, inputs, units)
    for time in (1, 7)
    for batch in (1, 3, 20)
    for inputs, units in ((3, 1), (1, 5), (8, 17), (33, 32))
)
SMALL = Shape(6, 5, 8, 18)  # for the options
# Matrix products of several tiles, and longer sums than are added in one chain.
LARGE = (Shape(20, 64, 40, 128), Shape(7, 70, 300, 65))
WIDE = Shape(1, 3, 20, 1040)  # one step: its weights are read without packing, in two pieces

DTYPES = ("float16", "bfloat16", "float32", "float64")


class Draw:
    """Random tensors of one dtype, which depend on the name of a case only."""

    def __init__(self, name: str, dtype: str) -> None:
        self.rng = np.random.default_rng(list(name.encode()))
        self.dtype = tf.as_dtype(dtype)

    def __call__(self, *shape: int, scale: float = 1.0) -> Any:
        return tf.constant(scale * self.rng.standard_normal(shape), self.dtype)

    def like(self, tensors: Sequence[Any]) -> list[Any]:
        return [tf.cast(self(*tensor.shape), tensor.dtype) for tensor in tensors]


Results = dict[str, Any]  # nested tensors, arrays and None, by the pass that computed them


class Case(NamedTuple):
    """Calls of an op and of its derivatives; `what` names shape and options."""

    op: str
    cell: str
    what: str
    run: Callable[[Draw], Results]
    dtypes: Sequence[str] = DTYPES


def described(call: Any) -> str:
    """The fields of a NamedTuple that have a default and another value."""
    defaults = call._field_defaults
    values = {name: getattr(call, name) for name in defaults}
    changed = (f"{name}={value}" for name, value in values.items() if value != defaults[name])
    return ", ".join(changed)


@functools.cache
def internal_ops() -> ModuleType:
    """The generated functions of all ops, for the ops that have no public function."""
    (path,) = pathlib.Path(tf_lstm_ops.__file__).parent.glob("*/tf_lstm_ops.so")
    module: ModuleType = tf.load_op_library(str(path))
    return module
