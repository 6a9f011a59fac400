"""Arrays of one operation of another program, as values whose axes are in one order."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tf_lstm_ops.inference import file, graph
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers import Concatenate
from tf_lstm_ops.inference.tracing.axes import (
    AxesError,
    Factor,
    NotBatch,
    Product,
    Traced,
    arranged,
    real,
)
from tf_lstm_ops.inference.tracing.reshaping import reshaped


class Aligned(NamedTuple):
    """Arrays that NumPy's rules combine.

    Attributes:
      values: with as many axes each, of size 1 where elements are repeated.
      groups: the axes of the values where they are not of size 1.
      axes: those of the arrays, likewise.
      mask: that of the result, if some arrays have no steps; else that of its layer counts.
    """

    values: list[Value]
    groups: tuple[Product, ...]
    axes: tuple[Product, ...]
    mask: Value | None = None

    def combined(self, value: Value) -> Traced:
        """The result of an operation on the elements.

        Args:
          value: the result, with the axes `groups`.

        Returns:
          The array.
        """
        value = value if self.mask is None else value.with_mask(self.mask)
        return Traced(value, self.groups, self.axes)


def of_rank(array: Traced, rank: int) -> Traced:
    """The array with further axes of size 1 in front, as NumPy repeats.

    Args:
      array: the array.
      rank: the number of axes, at least that of the array.

    Returns:
      The array.
    """
    return array.with_axes(((),) * (rank - array.rank) + array.axes)


def aligned(arrays: Sequence[Traced]) -> Aligned:
    """Values of arrays of one combination.

    Args:
      arrays: arrays that NumPy's rules combine.

    Returns:
      The values.

    Raises:
      AxesError: as of `arranged`, or the arrays have other sizes.
    """
    found = unified(arrays)
    axes = tuple(
        next((p for p in products if real(p)), products[0])
        for products in zip(*(array.axes for array in found), strict=True)
    )
    groups = _common_groups(found, axes)
    values = []
    for array in found:
        own = _factors(array.axes)
        values.append(arranged(array, [tuple(f for f in g if f in own) for g in groups]))
    has_steps = [bool(_factors(array.axes) & {*real(groups[1])}) for array in found]
    if all(has_steps):
        return Aligned(values, groups, axes)
    # A mask of one step says nothing of others.
    masks = [value.mask for value, has in zip(values, has_steps, strict=True) if has]
    values = [v if has else v.with_mask(None) for v, has in zip(values, has_steps, strict=True)]
    return Aligned(values, groups, axes, masks[0] if len(masks) == 1 else None)


def unified(arrays: Sequence[Traced], apart: int | None = None) -> list[Traced]:
    """Arrays that share the factors of their axes.

    Axes of several inputs, or features of several layers, have different factors also where an
    operation takes them as the same axis.

    Args:
      arrays: the arrays.
      apart: an axis that may have another size in each array; None: none.

    Returns:
      The arrays in the same order, with the same number of axes.

    Raises:
      AxesError: the arrays have other sizes, or other axes as the batch.
    """
    rank = max(array.rank for array in arrays)
    alike = [of_rank(array, rank) for array in arrays]
    for k in range(rank):
        if k != apart:
            alike = _divided_alike(alike, k)
    model = max(alike, key=_real_axes)
    axes = [p if k != apart else () for k, p in enumerate(map(real, model.axes))]
    taken = _factors(model.axes)
    return [each if each is model else _renamed(each, axes, taken, apart) for each in alike]


def _real_axes(array: Traced) -> int:
    return sum(map(bool, map(real, array.axes)))


def _factors(products: Iterable[Product]) -> set[Factor]:
    return {factor for product in products for factor in real(product)}


def _divided_alike(arrays: Sequence[Traced], axis: int) -> list[Traced]:
    """The arrays with an axis that has as many factors in all of them."""
    longest = max((real(array.axes[axis]) for array in arrays), key=len)
    sizes = [factor.size for factor in longest]
    found = []
    for array in arrays:
        own = real(array.axes[axis])
        if own and [factor.size for factor in own] != sizes and len(longest) > 1:
            if None in sizes:
                raise AxesError("its operands have axes that are joined in another way")
            before, behind = array.axes[:axis], array.axes[axis + 1 :]
            divided = reshaped(array, [*before, *sizes, *behind])  # type: ignore[list-item]
            parts = divided.axes[axis : axis + len(sizes)]
            joined = tuple(factor for part in parts for factor in part)
            array = divided.with_axes(
                (*divided.axes[:axis], joined, *divided.axes[axis + len(sizes) :])
            )
        found.append(array)
    return found


def _renamed(array: Traced, axes: list[Product], taken: set[Factor], apart: int | None) -> Traced:
    """The array with the factors of axes, which further ones of its own complete."""
    batch = {*real(array.groups[0])}
    names: dict[Factor, Factor] = {}
    for k, product in enumerate(array.axes):
        own, other = real(product), axes[k]
        if not other:
            other = tuple(f if f in batch else Factor(f.size, f.given, (f,)) for f in own)
            if batch & {*other} & taken:
                raise NotBatch
            taken |= {*other}
            axes[k] = () if k == apart else other
        pairs = [*zip(own, other, strict=False)]
        if len(own) not in (0, len(other)):
            raise AxesError("its operands have axes that are joined in another way")
        sizes = [(a.size or a.given, b.size or b.given) for a, b in pairs]
        if any(m != n and (None not in (m, n) or 1 in (m, n)) for m, n in sizes):
            raise AxesError("its operands have different sizes")
        names |= dict(pairs)
    if any((one in batch or other in batch) and one is not other for one, other in names.items()):
        raise NotBatch
    axes_of = [tuple(names.get(f, f) for f in product) for product in array.axes]
    groups = tuple(tuple(names.get(f, f) for f in group) for group in array.groups)
    return dataclasses.replace(array, axes=tuple(axes_of), groups=groups)


def _common_groups(arrays: Sequence[Traced], axes: Sequence[Product]) -> tuple[Product, ...]:
    """Axes for the values of all arrays."""
    model = max(arrays, key=_real_axes)
    order = {factor: k for k, product in enumerate(axes) for factor in real(product)}
    batch, *groups = model.groups
    known = {factor for group in model.groups for factor in group}
    for product in axes:
        more = tuple(factor for factor in real(product) if factor not in known)
        if more:
            groups = [group for group in groups if real(group)]
            behind = (k for k, g in enumerate(groups) if order[real(g)[0]] > order[more[0]])
            groups.insert(next(behind, len(groups)), more)
    found = [batch]
    for group in groups:
        counts = {len({*real(group)} & _factors(array.axes)) for array in arrays}
        is_whole = counts <= {0, len(real(group))}
        found += [group] if is_whole else [(factor,) for factor in real(group)]
    return tuple(found)


def joined(values: Sequence[Value]) -> Value:
    """Values behind each other along their last axis.

    Args:
      values: two or more.

    Returns:
      What they are all parts of, where they are; else a `Concatenate` of them.
    """
    parts: list[Any] = [value.node for value in values]
    if all(map(_is_plain_slice, parts)):
        bounds = [part.layer.ints[:3] for part in parts]
        sources = [part.operands[0] for part in parts]
        ends = [0, *(stop for _, _, stop in bounds)]
        is_whole = ends[-1] == file.MAX_SIZE and all(
            axis == -1 and start == end for (axis, start, _), end in zip(bounds, ends, strict=False)
        )
        if is_whole and len({source.key for source in sources}) == 1:
            return sources[0]
    return Concatenate()(*values)


def _is_plain_slice(node: Any) -> bool:
    is_slice = isinstance(node, graph.Node) and node.layer.kind == file.SLICE
    return is_slice and not node.layer.ints[3]
