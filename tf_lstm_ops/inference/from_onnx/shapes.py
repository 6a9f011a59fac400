"""Operators that move elements."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_onnx.values import (
    Call,
    Filled,
    Length,
    Operand,
    Operator,
    Size,
    is_of,
    of_axis,
    sizes_array,
)
from tf_lstm_ops.inference.tracing.alignment import of_rank
from tf_lstm_ops.inference.tracing.axes import (
    AxesError,
    Factor,
    Product,
    Target,
    Traced,
    derived,
    position,
    real,
    settled,
    size_of,
    with_groups,
)
from tf_lstm_ops.inference.tracing.parts import concatenated, part_of, reversed_along
from tf_lstm_ops.inference.tracing.reshaping import flat, reshaped
from tf_lstm_ops.onnx_graph import tensors
from tf_lstm_ops.onnx_graph.attributes import short

_ROUNDED = (10, 16)  # the numbers of ONNX's types
_INTEGERS = (6, 7)
_EXACT = (1, 11)  # floats that have all indices of a table
_FAR = 2**30  # beyond, positions stand for the end of an axis


def _transpose(call: Call) -> list[Operand]:
    x = call.traced()
    order = call.attributes.get("perm", [*reversed(range(x.rank))])
    if sorted(order) != [*range(x.rank)]:
        refuse(f"its perm is {[*order]}, and its array has {x.rank} axes")
    return [x.with_axes(x.axes[k] for k in order)]


def _squeeze(call: Call) -> list[Operand]:
    x = call.traced()
    given = call.integers(1, "axes")
    if given is None:  # those that have the size 1 in the file
        chosen = {k for k, product in enumerate(x.axes) if _is_one(product)}
    else:
        chosen = {position(k, x.rank) for k in given}
    for k in chosen:
        if real(x.axes[k]):
            refuse(f"axis {k} has not the size 1")
    return [x.with_axes(p for k, p in enumerate(x.axes) if k not in chosen)]


def _is_one(product: Product) -> bool:
    """Whether an axis has the size 1, which then is no number of steps for which others stand."""
    if all(1 in (factor.size, factor.given) for factor in product):
        settled(product)
    return size_of(product) == 1


def _unsqueeze(call: Call) -> list[Operand]:
    given = call.integers(1, "axes") or []
    length = call.operand(0)
    is_length = isinstance(length, Length) and not length.keeps
    if is_length and [position(k, length.array.rank) for k in given] == [length.axis]:  # type: ignore[union-attr]
        return [dataclasses.replace(length, keeps=True)]  # type: ignore[type-var]
    x = call.traced()
    rank = x.rank + len(given)
    chosen = {position(k, rank) for k in given}
    if len(chosen) < len(given):
        refuse(f"its axes are {given}, of which two are the same")
    rest = iter(x.axes)
    return [x.with_axes(() if k in chosen else next(rest) for k in range(rank))]


def _reshape(call: Call) -> list[Operand]:
    x = call.traced()
    wanted: list[Target] = [
        size.product if isinstance(size, Size) else size for size in call.sizes(1, "shape")
    ]
    if not call.flag("allowzero"):
        if 0 in wanted[x.rank :]:
            refuse(f"its target {wanted} copies an axis, and its array has {x.rank}")
        wanted = [x.axes[k] if size == 0 else size for k, size in enumerate(wanted)]
    try:
        return [reshaped(x, wanted)]
    except AxesError:  # elements move from one axis to another
        return [reshaped(flat(x), wanted)]


def _flatten(call: Call) -> list[Operand]:
    x = call.traced()
    axis = int(call.attributes["axis"])
    axis = axis if axis == x.rank else position(axis, x.rank)
    both: list[Target] = [
        tuple(factor for product in part for factor in product)
        for part in (x.axes[:axis], x.axes[axis:])
    ]
    return [reshaped(x, both)]


def _expand(call: Call) -> list[Operand]:
    length = call.operand(0)
    if isinstance(length, Length):  # a division repeats it
        call.sizes(1, "shape")
        return [length]
    x = call.traced()
    wanted = call.sizes(1, "shape")
    x = of_rank(x, max(x.rank, len(wanted)))
    for product, size in zip(reversed(x.axes), reversed(wanted), strict=False):
        if not is_of(size, product) and (isinstance(size, Size) or size != 1):
            refuse("it repeats elements")
    return [x]


def _cast(call: Call) -> list[Operand]:
    x, to = call.traced(), int(call.attributes["to"])
    # Nothing but a comparison reads integers that became floats.
    if not x.is_float and to in (*_INTEGERS, *_EXACT):
        return [x]
    if x.is_float and to in call.floats:
        return [x]
    if x.is_float and to in _ROUNDED:
        refuse(f"it rounds to {tensors.name_of(to)}, and a session computes in float32")
    refuse("it converts numbers to another kind")


def _reverse_sequence(call: Call) -> list[Operand]:
    """A reversal of all rows by the same length, that of the axis."""
    x, lengths = call.traced(), call.operand(1)
    axis = position(int(call.attributes["time_axis"]), x.rank)
    product = x.axes[axis]
    found = [lengths.value.item()] if isinstance(lengths, Filled) else call.sizes(1, "lengths")
    if not all(
        is_of(each, product) if isinstance(each, Size) else each == settled(product)
        for each in found
    ):
        refuse("its lengths are not that of the axis")
    return [reversed_along(x, axis)]


def _part(call: Call) -> list[Operand]:
    x = call.traced()
    starts, ends = call.integers(1, "starts"), call.integers(2, "ends")
    if starts is None or ends is None:
        refuse("its bounds are not constants")
    axes = call.integers(3, "axes") or [*range(len(starts))]
    steps = call.integers(4, "steps") or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        start = 0 if step == 1 and start < -_FAR else start
        if step == -1 and (start == -1 or start > _FAR) and end < -_FAR:
            x = reversed_along(x, position(axis, x.rank))
            continue
        if step != 1:
            refuse(f"a session takes parts with the steps 1 and -1, and this one has {step}")
        if start > _FAR or end < -_FAR:
            refuse("it takes no elements")
        x = part_of(x, position(axis, x.rank), start, None if end > _FAR else end)
    return [x]


def _split(call: Call) -> list[Operand]:
    x = call.traced()
    axis = call.axis(x.rank)
    lengths, size = call.integers(1, "split"), settled(x.axes[axis])
    if call.attributes.get("num_outputs", len(call.used)) != len(call.used):
        refuse("its attribute num_outputs is not the number of its outputs")
    if lengths is None and size is not None:
        length = -(-size // len(call.used))
        lengths = [min(length, size - k * length) for k in range(len(call.used))]
    fits = lengths is not None and len(lengths) == len(call.used) and min(lengths) > 0
    if lengths is None or not fits or size is None or sum(lengths) != size:
        refuse("it divides an axis whose size is not known, or into other parts than it has")
    ends = np.cumsum(lengths)
    return [
        part_of(x, axis, int(end) - length, int(end)) if is_used else None
        for end, length, is_used in zip(ends, lengths, call.used, strict=False)
    ]


def _gather(call: Call) -> list[Operand]:
    data, index = call.operand(0), call.operand(1)
    if isinstance(data, np.ndarray) and isinstance(index, Traced):
        return [_embedding(call, data, index)]
    x, where = call.traced(), call.whole_numbers(1, "index")
    if where.size != 1 or where.ndim > 1:
        refuse(f"it takes {where.size} elements of an axis; a session takes one")
    axis, at = call.axis(x.rank), int(where.ravel()[0])
    found = part_of(x, axis, at, None if at == -1 else at + 1)
    if where.ndim == 0:
        found = found.with_axes(p for k, p in enumerate(found.axes) if k != axis)
    return [found]


def _embedding(call: Call, table: Any, indices: Traced) -> Traced:
    if call.attributes["axis"] or table.ndim != 2 or table.dtype == object:
        refuse("it takes elements of a table along another axis than the first one of two")
    if indices.is_float or not indices.value.is_given:
        refuse("its indices are not an input of the model")
    features = (Factor(table.shape[1]),)
    value = layers.Embedding(table)(indices.value)
    return Traced(value, (*indices.groups, features), (*indices.axes, features))


# Several arrays.


def _concat(call: Call) -> list[Operand]:
    arrays = [call.traced(k) for k in range(len(call.operands))]
    if len(arrays) == 1:
        return [arrays[0]]
    rank = arrays[0].rank
    if any(array.rank != rank for array in arrays):
        refuse("its operands have different numbers of axes")
    return [concatenated(arrays, call.axis(rank))]


def _pad(call: Call) -> list[Operand]:
    x = call.traced()
    mode = call.attributes["mode"]
    pads = call.integers(1, "pads")
    axes = call.integers(3, "axes")
    if pads is None:
        refuse("it has no pads")
    value = call.attributes.get("value", 0.0)  # before opset 11
    if call.operand(2) is not None:
        value = call.constant(2, "value")
    if mode == "constant" and np.any(value):
        refuse("it fills with another number than 0")
    if mode not in ("constant", "reflect"):
        refuse(f"its mode is {short(mode)}, and a session has constant and reflect")
    where = [position(k, x.rank) for k in axes] if axes else [*range(x.rank)]
    if len(pads) != 2 * len({*where}) or len({*where}) < len(where):
        refuse(f"it has {len(pads)} pads for the axes {where}")
    pairs = {k: (pads[n], pads[n + len(where)]) for n, k in enumerate(where)}
    padded = [k for k, pair in pairs.items() if any(pair)]
    if not padded:
        return [x]
    if len(padded) > 1 or min(pairs[padded[0]]) < 0:
        refuse("a session pads one axis by zeros or reflection")
    return [_padded(x, padded[0], pairs[padded[0]], mode)]


def _padded(x: Traced, axis: int, pads: tuple[int, int], mode: str) -> Traced:
    product = x.axes[axis]
    rest = [tuple(f for f in group if f not in product) for group in x.groups]
    features = tuple(f for group in rest[1:] for f in group)
    x = with_groups(x, (rest[0], product, features))
    layer: Any = layers.ZeroPadding1D if mode == "constant" else layers.ReflectPadding1D
    new = (derived([product], lambda size: size + sum(pads)),)
    axes = (*x.axes[:axis], new, *x.axes[axis + 1 :])
    return dataclasses.replace(
        x, value=layer(pads)(x.value), groups=(rest[0], new, features), axes=axes
    )


def _shape(call: Call) -> list[Operand]:
    sizes = [of_axis(product) for product in _axes(call)]
    return [sizes_array(sizes[slice(call.attributes.get("start"), call.attributes.get("end"))])]


def _size(call: Call) -> list[Operand]:
    whole = of_axis(tuple(factor for product in _axes(call) for factor in product))
    return [sizes_array([whole]).reshape(())]


def _axes(call: Call) -> Sequence[Product]:
    """The axes of the first operand."""
    x = call.operand(0)
    if not isinstance(x, Filled):
        return call.traced().axes
    sizes = [size for size in x.sizes or () if size is not None]
    if x.sizes is None or len(sizes) < len(x.sizes):
        refuse("the sizes of its operand are not known")
    return [size.product if isinstance(size, Size) else (Factor(size),) for size in sizes]


_move = functools.partial(Operator, moves=True, of_integers=True)
_part_of = functools.partial(Operator, moves=True)
_read = functools.partial(Operator, of_integers=True)

OPERATORS = {
    "Transpose": _move(_transpose),
    "Squeeze": _move(_squeeze),
    "Unsqueeze": _move(_unsqueeze),
    "Reshape": _move(_reshape),
    "Flatten": _move(_flatten),
    "Gather": _move(_gather),
    "Slice": _part_of(_part),
    "Split": _part_of(_split),
    "ReverseSequence": _part_of(_reverse_sequence, ignored=("batch_axis",)),
    "Expand": _read(_expand),
    "Cast": _read(_cast, ignored=("saturate", "round_mode")),
    "Shape": _read(_shape),
    "Size": _read(_size),
    "Concat": Operator(_concat),
    "Pad": Operator(_pad),
}
