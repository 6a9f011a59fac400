"""The axes of an array divided and joined in another way, with the elements in the same order."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from tf_lstm_ops.inference.tracing.axes import (
    AxesError,
    Factor,
    Product,
    Target,
    Traced,
    arranged,
    real,
    size_of,
)


def reshaped(array: Traced, target: Sequence[Target]) -> Traced:
    """The array with other axes of the same elements in the same order.

    Args:
      array: the array.
      target: for each axis a size, -1 once, or factors.

    Returns:
      The array. No layer is added.

    Raises:
      AxesError: the target does not fit, or an axis is divided in an unknown way.
    """
    work = _Division(array)
    split = next((k for k, each in enumerate(target) if each == -1), len(target))
    front = [work.taken(each, 0) for each in target[:split]]
    back = [work.taken(each, -1) for each in reversed(target[split + 1 :])]
    if split < len(target):
        middle = [tuple(work.left)]
    else:
        middle = []
        if any(factor.size != 1 for factor in work.left):
            raise AxesError("it does not keep the number of elements")
    return dataclasses.replace(
        array, groups=tuple(work.groups), axes=(*front, *middle, *reversed(back))
    )


def flat(array: Traced) -> Traced:
    """An array whose axes behind the batch are one factor, so that any axes can be made of it.

    Args:
      array: the array.

    Returns:
      The array; its value is behind a `Reshape` where it has several axes.

    Raises:
      AxesError: the batch is not the first axis, or the other sizes are not known.
    """
    if real(array.axes[0]) != real(array.groups[0]):
        raise AxesError("it moves elements between the batch and other axes")
    whole = tuple(factor for product in array.axes[1:] for factor in product)
    size = size_of(whole)
    if size is None:
        raise AxesError("it moves elements between axes, and not all their sizes are known")
    value = arranged(array, (array.groups[0], whole))
    axes = array.groups[0], (Factor(size),)
    return dataclasses.replace(array, value=value, groups=axes, axes=axes)


class _Division:
    """Takes the factors of an array from its ends.

    Args:
      array: the array.
    """

    def __init__(self, array: Traced) -> None:
        self.left = [factor for product in array.axes for factor in product]
        self.groups = [*array.groups]

    def taken(self, want: Target, end: int) -> Product:
        """The factors of an axis of a size, or of factors, from the front (0) or the back (-1)."""
        if isinstance(want, int):
            return self._of_size(want, end)
        if not any(factor.size is None for factor in want):
            return self._of_size(math.prod(factor.size or 0 for factor in want), end)
        unknown = [factor for factor in want if factor.size is None]
        number = math.prod(factor.size or 1 for factor in want)
        found: list[Factor] = []
        while unknown or number != 1:
            if not self.left:
                raise AxesError("it does not keep the number of elements")
            factor = self.left.pop(end)
            found.append(factor)
            if factor.size is None and factor in unknown:
                unknown.remove(factor)
            elif factor.size is not None and number % factor.size == 0:
                number //= factor.size
            else:
                raise AxesError("it moves elements of one axis to another")
        return tuple(found if end == 0 else reversed(found))

    def _of_size(self, want: int, end: int) -> Product:
        if want == 1 and self.left and self.left[end].is_batch and self.left[end].size == 1:
            return (self.left.pop(end),)
        found: list[Factor] = []
        size = 1
        while size != want:
            if not self.left:
                raise AxesError("it does not keep the number of elements")
            factor = self.left.pop(end)
            part = factor.size if factor.size is not None else factor.given
            if part is None:
                raise AxesError("it gives an axis of unknown size a fixed one")
            if want % (size * part):
                factor = self._divided(factor, want // size, end)
                part = factor.size or 0
            size *= part
            found.append(factor)
        return tuple(found if end == 0 else reversed(found))

    def _divided(self, factor: Factor, size: int, end: int) -> Factor:
        """A part of a factor. The rest is left."""
        factor.settle()
        if factor.size is None or size < 1 or factor.size % size:
            raise AxesError("it does not keep the order of the elements")
        part, rest = Factor(size), Factor(factor.size // size)
        pair = (part, rest) if end == 0 else (rest, part)
        for k, group in enumerate(self.groups):
            if factor in group:
                at = group.index(factor)
                if k == 0:
                    raise AxesError("it divides the axis of the batch")
                self.groups[k] = (*group[:at], *pair, *group[at + 1 :])
        self.left.insert(0 if end == 0 else len(self.left), rest)
        return part
