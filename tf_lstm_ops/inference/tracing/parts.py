"""Parts of an axis, and arrays behind one another along one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_lstm_ops.inference import file, graph, layers
from tf_lstm_ops.inference.tracing.alignment import joined, unified
from tf_lstm_ops.inference.tracing.axes import (
    AxesError,
    Factor,
    Product,
    Traced,
    arranged,
    derived,
    real,
    settled,
    size_of,
    with_groups,
)


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


def _group_with(x: Traced, product: Product) -> tuple[int, int | None]:
    """Which axis of the value an axis is or begins, and the size behind it there; or -1, None."""
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
