"""Operators that move elements."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops.inference import file, graph, layers
from tf_lstm_ops.inference.alignment import joined, of_rank, unified
from tf_lstm_ops.inference.axes import (
    AxesError,
    Factor,
    Product,
    Target,
    Traced,
    arranged,
    derived,
    flat,
    position,
    real,
    reshaped,
    settled,
    size_of,
    with_groups,
)
from tf_lstm_ops.inference.from_onnx import sizes
from tf_lstm_ops.inference.from_onnx.values import Call, Filled, Function, Operand, Sizes, refuse

_FLOATS = (1, 10, 11, 16)  # the numbers of ONNX's types
_INTEGERS = (6, 7)


def _transpose(call: Call) -> list[Operand]:
    x = call.traced()
    order = call.attributes.get("perm", [*reversed(range(x.rank))])
    if sorted(order) != [*range(x.rank)]:
        refuse(f"its perm is {[*order]}, and its array has {x.rank} axes")
    return [x.with_axes(x.axes[k] for k in order)]


def _squeeze(call: Call) -> list[Operand]:
    x = call.traced()
    given = call.integers(1, "axes")
    if given is None:
        chosen = {k for k, product in enumerate(x.axes) if not real(product)}
    else:
        chosen = {position(k, x.rank) for k in given}
    for k in chosen:
        if real(x.axes[k]):
            refuse(f"axis {k} has not the size 1")
    return [x.with_axes(p for k, p in enumerate(x.axes) if k not in chosen)]


def _unsqueeze(call: Call) -> list[Operand]:
    x = call.traced()
    given = call.integers(1, "axes") or []
    rank = x.rank + len(given)
    chosen = {position(k, rank) for k in given}
    if len(chosen) < len(given):
        refuse(f"its axes are {given}, of which two are the same")
    rest = iter(x.axes)
    return [x.with_axes(() if k in chosen else next(rest) for k in range(rank))]


def _reshape(call: Call) -> list[Operand]:
    x, target = call.traced(), call.operand(1)
    if isinstance(target, Sizes):
        wanted = [*target.sizes]
    else:
        wanted = [int(size) for size in np.ravel(call.constant(1, "shape"))]
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
    axis = int(call.attributes.get("axis", 1))
    axis = axis if axis == x.rank else position(axis, x.rank)
    both: list[Target] = [
        tuple(factor for product in part for factor in product)
        for part in (x.axes[:axis], x.axes[axis:])
    ]
    return [reshaped(x, both)]


def _expand(call: Call) -> list[Operand]:
    x = call.operand(0)
    if isinstance(x, Filled | Sizes):  # a size for each row is this size
        return [x]
    if isinstance(x, np.ndarray) and x.size and (x == x.ravel()[0]).all():
        return [Filled(float(x.ravel()[0]))]
    x, target = call.traced(), call.operand(1)
    wanted = target.sizes if isinstance(target, Sizes) else np.ravel(call.constant(1, "shape"))
    x = of_rank(x, max(x.rank, len(wanted)))
    for product, size in zip(reversed(x.axes), reversed([*wanted]), strict=False):
        if isinstance(size, tuple) and size != product:
            refuse("it repeats elements")
        if not isinstance(size, tuple) and int(size) not in (1, size_of(product)):
            refuse("it repeats elements")
    return [x]


def _cast(call: Call) -> list[Operand]:
    x, to = call.operand(0), int(call.attributes.get("to", 0))
    if not isinstance(x, Traced) or to in (_FLOATS if x.is_float else _INTEGERS):
        return [x]
    refuse("it converts numbers to another kind")


# Parts of an axis.


def part_of(x: Traced, axis: int, start: int, stop: int | None) -> Traced:
    """A part of an axis.

    Args:
      x: the array.
      axis: which axis.
      start: the first element; negative ones count from the end.
      stop: the one behind the last; None: the end.

    Returns:
      The array.

    Raises:
      AxesError: a session cannot take this part.
    """
    product = x.axes[axis]
    # Only the first step, the last one and parts to the end are the same for any number of steps.
    is_open = (start, stop) in ((0, 1), (-1, None)) or (start >= 0 and stop is None)
    if (start, stop) == (0, 1) and all(1 in (f.size, f.given) for f in product):
        is_open = False  # the whole axis
    size = size_of(product) if is_open else settled(product)
    if size is not None:
        start, stop, _ = slice(start, stop).indices(size)
        if (start, stop) == (0, size):
            return x
        if stop <= start:
            raise AxesError("it takes no elements")
    elif (start, stop) == (0, None):
        return x
    group, behind = _group_with(x, product)
    if group == 0:
        raise AxesError("it takes some rows of the batch")
    if behind is None:
        x, group, behind = _separated(x, axis), 1, 1
    is_last = start == -1 and stop is None if size is None else stop == size == start + 1
    is_one = is_last or stop == start + 1
    new: Product = (Factor(1) if is_one else derived([product], lambda n: _length(n, start, stop)),)
    axes = (*x.axes[:axis], new, *x.axes[axis + 1 :])
    is_step = group == 1 == behind and len(x.groups) == 3
    if is_step and is_one and (is_last or start == 0):
        step = layers.LastStep() if is_last else layers.FirstStep()
        return Traced(step(x.value), (x.groups[0], x.groups[2]), axes, x.is_float)
    place = -1 if group == len(x.groups) - 1 else group
    end = None if stop is None or stop == size else stop * behind
    value = layers.Slice(place, start * behind, end)(x.value)
    rest = real(x.groups[group])[len(real(product)) :] if behind > 1 else ()
    groups = (*x.groups[:group], (*new, *rest), *x.groups[group + 1 :])
    return Traced(value, groups, axes, x.is_float)


def _length(size: int, start: int, stop: int | None) -> int:
    """The number of elements of a part."""
    length = len(range(size)[start:stop])
    if not length:
        raise AxesError("it takes no elements")
    return length


def reversed_along(x: Traced, axis: int) -> Traced:
    """The elements of an axis in the opposite order.

    Args:
      x: the array.
      axis: which axis.

    Returns:
      The array.

    Raises:
      AxesError: a session cannot take them so.
    """
    product = x.axes[axis]
    if not real(product):
        return x
    group, behind = _group_with(x, product)
    if group == 0:
        raise AxesError("it reverses the batch")
    if group < 0 or behind != 1:
        x, group = _separated(x, axis), 1
    made: Any = x.value.node
    layer = layers.Slice(-1 if group == len(x.groups) - 1 else group, reverse=True)
    is_reversed = isinstance(made, graph.Node) and made.layer.kind == file.SLICE
    if is_reversed and made.layer.ints == layer.record.ints:
        return x.with_value(made.operands[0])  # twice is not at all
    return x.with_value(layer(x.value))


def _reverse_sequence(call: Call) -> list[Operand]:
    """A reversal of all rows by the same length, that of the axis."""
    x, lengths = call.traced(), call.operand(1)
    axis = position(int(call.attributes.get("time_axis", 0)), x.rank)
    product = x.axes[axis]
    if isinstance(lengths, Sizes):
        is_whole = all(each in (size_of(product), product) for each in lengths.sizes)
    elif isinstance(lengths, Filled):
        is_whole = lengths.value == settled(product)
    else:
        is_whole = bool((call.constant(1, "lengths") == settled(product)).all())
    if not is_whole:
        refuse("its lengths are not that of the axis")
    return [reversed_along(x, axis)]


def _group_with(x: Traced, product: Product) -> tuple[int, int | None]:
    """The axis of the value that an axis is, and the size of what is behind it in this axis.

    The size is None if the axis is neither a whole one nor the first factors of one.
    """
    own = real(product)
    for k, group in enumerate(map(real, x.groups)):
        if group == own:
            return k, 1
        if own and group[: len(own)] == own:
            return k, size_of(group[len(own) :])
    return -1, None


def _separated(x: Traced, axis: int) -> Traced:
    """The array with one of its axes as the axis behind the batch of its value."""
    product = x.axes[axis]
    if x.groups[0] and x.groups[0][0] in product:
        raise AxesError("it takes some rows of the batch")
    rest = [tuple(f for f in group if f not in product) for group in x.groups]
    groups = (rest[0], product, *[group for group in rest[1:] if group])
    return with_groups(x, groups)


def _slice(call: Call) -> list[Operand]:
    x: Any = call.operand(0)
    if isinstance(x, Filled):
        return [x]
    x = call.traced()
    starts, ends = call.integers(1, "starts"), call.integers(2, "ends")
    if starts is None or ends is None:
        refuse("its bounds are not constants")
    axes = call.integers(3, "axes") or [*range(len(starts))]
    steps = call.integers(4, "steps") or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step == -1 and start in (-1, 2**63 - 1) and end < -(2**30):
            x = reversed_along(x, position(axis, x.rank))
            continue
        if step != 1:
            refuse(f"a session takes parts with the steps 1 and -1, and this one has {step}")
        # The largest numbers stand for the end.
        x = part_of(x, position(axis, x.rank), start, None if end > 2**30 else end)
    return [x]


def _split(call: Call) -> list[Operand]:
    x: Any = call.operand(0)
    if isinstance(x, Filled):
        return [x] * len(call.used)
    x = call.traced()
    axis = call.axis(x.rank, 0)
    lengths, size = call.integers(1, "split"), settled(x.axes[axis])
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
    if isinstance(data, Filled):
        return [data]
    if isinstance(data, np.ndarray) and isinstance(index, Traced):
        return [_embedding(call, data, index)]
    x, where = call.traced(), call.constant(1, "index")
    if where.size != 1 or where.ndim > 1:
        refuse(f"it takes {where.size} elements of an axis; a session takes one")
    axis, at = call.axis(x.rank, 0), int(where.ravel()[0])
    found = part_of(x, axis, at, None if at == -1 else at + 1)
    if where.ndim == 0:
        found = found.with_axes(p for k, p in enumerate(found.axes) if k != axis)
    return [found]


def _embedding(call: Call, table: Any, indices: Traced) -> Traced:
    if call.attributes.get("axis", 0) or table.ndim != 2:
        refuse("it takes elements of a table along another axis than the first one of two")
    if indices.is_float or not indices.value.is_given:
        refuse("its indices are not an input of the model")
    features = (Factor(table.shape[1]),)
    value = layers.Embedding(table)(indices.value)
    return Traced(value, (*indices.groups, features), (*indices.axes, features))


# Several arrays.


def _concat(call: Call) -> list[Operand]:
    given = [call.operand(k) for k in range(len(call.operands))]
    if all(isinstance(each, Filled) and each.value == given[0].value for each in given):  # type: ignore[union-attr]
        return given[:1]
    arrays = [call.traced(k) for k in range(len(given))]
    if len(arrays) == 1:
        return [arrays[0]]
    rank = arrays[0].rank
    if any(array.rank != rank for array in arrays):
        refuse("its operands have different numbers of axes")
    return [concatenated(arrays, call.axis(rank, 1))]


def concatenated(arrays: Sequence[Traced], axis: int) -> Traced:
    """Arrays behind one another.

    Args:
      arrays: two or more of the same number of axes.
      axis: along which.

    Returns:
      The array.

    Raises:
      AxesError: a session cannot join them so.
    """
    if any({*real(array.groups[0])} & {*array.axes[axis]} for array in arrays):
        raise AxesError("it joins arrays along the batch")
    arrays = unified(arrays, apart=axis)
    rest = [[real(p) for k, p in enumerate(array.axes) if k != axis] for array in arrays]
    if any(each != rest[0] for each in rest):
        raise AxesError("its operands have different sizes")
    model = next((array for array in arrays if real(array.axes[axis])), arrays[0])
    part = model.axes[axis]
    place, _ = _group_with(model, part) if real(part) else (len(model.groups) - 1, 1)
    if place == -1:
        model, place = _separated(model, axis), 1
    before, behind = model.groups[:place], model.groups[place + 1 :]
    # A new axis becomes the major part of the features.
    minor = real(model.groups[place])[len(real(part)) :]
    values = [
        arranged(array, (*before, (*real(array.axes[axis]), *minor), *behind)) for array in arrays
    ]
    if place == 1 and behind:  # a session has no mask of joined steps
        values = [value.with_mask(None) for value in values]
    whole = (derived([array.axes[axis] for array in arrays], lambda *sizes: sum(sizes)),)
    value = layers.Concatenate(place)(*values) if behind else joined(values)
    groups = (*before, (*whole, *minor), *behind)
    return Traced(value, groups, (*model.axes[:axis], whole, *model.axes[axis + 1 :]))


def _pad(call: Call) -> list[Operand]:
    x = call.traced()
    mode = call.attributes.get("mode", "constant")
    pads = call.integers(1, "pads")
    axes = call.integers(3, "axes")
    if pads is None:
        refuse("it has no pads")
    if call.operand(2) is not None and np.any(call.constant(2, "value")):
        refuse("it fills with another number than 0")
    if mode not in ("constant", "reflect"):
        refuse(f"its mode is {mode}, and a session has constant and reflect")
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


FUNCTIONS: dict[str, Function] = {
    "Transpose": _transpose,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "Expand": _expand,
    "Cast": _cast,
    "Slice": _slice,
    "Split": _split,
    "ReverseSequence": _reverse_sequence,
    "Gather": _gather,
    "Concat": _concat,
    "Pad": _pad,
    "Shape": sizes.shape,
    "Size": sizes.size,
}
