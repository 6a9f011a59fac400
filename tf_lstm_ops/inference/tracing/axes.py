"""Arrays of a program that orders axes in its own way, as values of a session.

The axes of a session's value have one order: the batch first, then time, then features. Programs of
other frameworks transpose, squeeze and reshape. Here this is bookkeeping: an axis is a product of
factors, and a layer is added only where another layer needs the factors in another order.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence

from tf_lstm_ops._refusal import Refused
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers import Permute, Reshape


@dataclasses.dataclass(eq=False)
class Factor:
    """A factor of axes. Two factors are the same only if they are one object.

    Attributes:
      size: None: a call decides it.
      given: the size that the file has, for which any other one may stand until it is needed; None:
        none.
      parents: factors on whose size that of this one depends.
      is_batch: whether it is the batch, which is an axis also where the file has the size 1.
    """

    size: int | None = None
    given: int | None = None
    parents: Product = ()
    is_batch: bool = False

    def settle(self) -> None:
        """Sets the size to the given one, also that of the parents."""
        left, seen = [self], {self}
        while left:
            factor = left.pop()
            if factor.size is None:
                factor.size = factor.given
            left += {*factor.parents} - seen
            seen.update(factor.parents)


Product = tuple[Factor, ...]  # of an axis, the major factor first; () has the size 1
# An element of the target of a reshape: a size, -1, or the factors of an axis.
Target = int | Product


_MOST_FEATURES = 1 << 24  # layers have arrays of as many elements


class AxesError(Refused):
    """A session cannot arrange axes so. The text says why."""


class NotBatch(AxesError):
    """An operator uses another axis as the batch."""

    def __init__(self) -> None:
        super().__init__("it uses another axis as the batch")


@dataclasses.dataclass(frozen=True, eq=False)
class Traced:
    """An array of the program.

    Attributes:
      value: the value of the session.
      groups: the axes of `value`. The first one is the batch.
      axes: the axes of the array. Factors of size 1 may be in one of the two only.
      is_float: whether the elements are floats; others are indices.
    """

    value: Value
    groups: tuple[Product, ...]
    axes: tuple[Product, ...]
    is_float: bool = True

    @property
    def rank(self) -> int:
        """The number of axes of the array."""
        return len(self.axes)

    @property
    def features(self) -> int:
        """The size of the last axis of `value`; an `AxesError` if it is not known."""
        size = settled(self.groups[-1])
        if size is None:
            raise AxesError("the number of its features is not known")
        if size > _MOST_FEATURES:
            raise AxesError(f"it has {size} features, more than {_MOST_FEATURES}")
        return size

    def with_axes(self, axes: Iterable[Product]) -> Traced:
        """The same elements with other axes.

        Args:
          axes: of the array.

        Returns:
          The array.
        """
        return dataclasses.replace(self, axes=tuple(axes))

    def with_value(self, value: Value) -> Traced:
        """Another array of the same axes.

        Args:
          value: of the session.

        Returns:
          The array.
        """
        return dataclasses.replace(self, value=value)


def size_of(product: Product) -> int | None:
    """The size of an axis.

    Args:
      product: its factors.

    Returns:
      The size; None if it is not known before a call.
    """
    sizes = [factor.size for factor in product]
    return None if None in sizes else math.prod(sizes)  # type: ignore[arg-type]


def settled(product: Product) -> int | None:
    """The size of an axis where a number is needed. No other size can then stand for it.

    Args:
      product: its factors.

    Returns:
      The size; None if the file does not have it.
    """
    for factor in product:
        if factor.size is None:
            factor.settle()
    return size_of(product)


def derived(products: Sequence[Product], function: Callable[..., int]) -> Factor:
    """A factor whose size depends on those of axes.

    Args:
      products: the axes.
      function: the size by their sizes.

    Returns:
      The factor.
    """
    sizes = [size_of(product) for product in products]
    if None not in sizes:
        return Factor(function(*sizes))
    parents = tuple(factor for product in products for factor in product)
    if any(f.size is None and f.given is None for f in parents):
        return Factor()
    given = [math.prod(f.size or f.given or 0 for f in product) for product in products]
    return Factor(None, function(*given), parents)


def real(product: Product) -> Product:
    """The factors of an axis that are not of size 1.

    Args:
      product: the factors.

    Returns:
      Those of another size, or of an unknown one.
    """
    return tuple(factor for factor in product if factor.size != 1 or factor.is_batch)


def position(axis: int, rank: int) -> int:
    """An axis, counted from the front.

    Args:
      axis: negative ones count from the end.
      rank: the number of axes.

    Returns:
      From 0 to rank - 1.

    Raises:
      AxesError: there is no such axis.
    """
    if not -rank <= axis < rank:
        raise AxesError(f"its array has {rank} axes, and it names axis {axis}")
    return axis % rank


def arranged(array: Traced, groups: Sequence[Product]) -> Value:
    """A value of the session whose axes are given ones.

    Args:
      array: the array.
      groups: the axes, of which the first one is the batch; all factors of the array that are not
        of size 1, once each.

    Returns:
      The value, behind a `Permute` or `Reshape` where they differ.

    Raises:
      AxesError: the batch is not the first axis, or a size that a `Reshape` needs is not known.
    """
    have, want = [*map(real, array.groups)], [*map(real, groups)]
    if have == want:
        return array.value
    if not have or not want or have[0] != want[0]:
        raise NotBatch
    is_order = set(have) == set(want) and len(have) == len(want) == len(set(want))
    if is_order and () not in want[1:]:
        return Permute([have.index(each) for each in want[1:]])(array.value)
    before = [factor for group in have[1:] for factor in group]
    after = [factor for group in want[1:] for factor in group]
    if set(before) != set(after) or len(before) != len(after):
        raise AxesError("its operands have different axes")
    value = array.value
    if before != after:
        value = Reshape(_sizes([(factor,) for factor in before]))(value)
        value = Permute([1 + before.index(factor) for factor in after])(value)
    return Reshape(_sizes(groups[1:]))(value)


def _sizes(products: Sequence[Product]) -> list[int]:
    """The sizes for a `Reshape`, of which one may be unknown."""
    sizes = [size_of(product) for product in products] or [1]
    if sizes.count(None) > 1:
        sizes = [settled(product) for product in products]
    if sizes.count(None) > 1:
        raise AxesError("it joins or divides axes, and the sizes of more than one are not known")
    return [-1 if size is None else size for size in sizes]


def rows_of(array: Traced, axis: int = 0) -> tuple[Product, ...]:
    """The axes of a value that count as the batch where a program uses an axis as the batch.

    Args:
      array: the array.
      axis: the axis of the program.

    Returns:
      The batch; behind it the axis where that is another one, whose elements are computed alone.

    Raises:
      NotBatch: the batch is another axis of the array.
    """
    batch, own = array.groups[0], array.axes[axis]
    if real(own) == real(batch):
        return (batch,)
    if real(own)[: len(real(batch))] == real(batch):
        return batch, real(own)[len(real(batch)) :]
    if any({*real(batch)} & {*product} for product in array.axes):
        raise NotBatch
    return (batch, own) if real(own) else (batch,)


def with_last(array: Traced, axis: int = -1) -> Traced:
    """An array one of whose axes is the last axis of its value.

    Args:
      array: the array.
      axis: which of its axes.

    Returns:
      The array; its value may be behind a `Permute` or `Reshape`.

    Raises:
      AxesError: as of `arranged`.
    """
    last = array.axes[position(axis, array.rank)]
    if real(array.groups[-1]) == real(last):
        # The factors of size 1 must be those of the axis.
        groups = (*array.groups[:-1], last)
        return dataclasses.replace(array, groups=groups)
    rest = [[factor for factor in group if factor not in last] for group in array.groups]
    kept = [tuple(group) for k, group in enumerate(rest) if k == 0 or group]
    if len(kept[0]) != len(array.groups[0]):
        raise NotBatch
    groups = (*kept, last)
    return dataclasses.replace(array, value=arranged(array, groups), groups=groups)


def with_known_last(array: Traced) -> Traced:
    """An array whose value has a last axis of a known size.

    Args:
      array: the array.

    Returns:
      The array; its value may be behind a `Permute` or `Reshape`.
    """
    if size_of(array.groups[-1]) is not None:
        return array
    batch, *groups = array.groups
    known = [group for group in groups if real(group) and size_of(group) is not None]
    last = known[-1] if known else (Factor(1),)
    rest = [group for group in groups if group is not last]
    return with_groups(array, (batch, *rest, last))


def with_groups(array: Traced, groups: Sequence[Product]) -> Traced:
    """An array whose value has given axes; see `arranged`.

    Args:
      array: the array.
      groups: the axes.

    Returns:
      The array.

    Raises:
      AxesError: as of `arranged`.
    """
    return dataclasses.replace(array, value=arranged(array, groups), groups=tuple(groups))
