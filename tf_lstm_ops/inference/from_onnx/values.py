"""What a name of an ONNX graph stands for while the graph is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.tracing.alignment import aligned
from tf_lstm_ops.inference.tracing.axes import (
    Factor,
    Product,
    Traced,
    position,
    settled,
    size_of,
)
from tf_lstm_ops.onnx_graph.attributes import Attributes
from tf_lstm_ops.onnx_graph.budget import Budget

Array = npt.NDArray[Any]
_MOST_FACTORS = 64  # of a size


class Size:
    """The size of an axis that a call decides, as an element of an array of objects.

    Sizes have products. Where one is compared, the size that the file has becomes the only one.

    Args:
      product: the factors of the axis.
    """

    def __init__(self, product: Product) -> None:
        self.product = product

    def __mul__(self, other: Any) -> Size:
        if isinstance(other, Size):
            return self._with(other.product)
        if not isinstance(other, int | np.integer) or isinstance(other, bool):
            refuse("it mixes sizes of axes with other arrays")
        if other < 1:
            refuse(f"it multiplies a size of the call by {other}")
        return self if other == 1 else self._with((Factor(int(other)),))

    __rmul__ = __mul__

    def _with(self, more: Product) -> Size:
        product = (*self.product, *more)
        if len(product) > _MOST_FACTORS:
            refuse(f"it multiplies {len(product)} sizes, more than an array has axes")
        return Size(product)

    def _refused(self, other: Any) -> NoReturn:
        refuse("it computes with sizes of the call, of which a session has products only")

    __add__ = __radd__ = __sub__ = __rsub__ = __floordiv__ = __rfloordiv__ = _refused
    __truediv__ = __rtruediv__ = __mod__ = __rmod__ = _refused

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Size) and other.product == self.product:
            return True
        if isinstance(other, int | np.integer) and other < 1:
            return False  # a program asks whether there are any elements, or whether it is -1
        return _known(settled(self.product)) == _known(_settled(other))

    def __lt__(self, other: object) -> bool:
        return _known(settled(self.product)) < _known(_settled(other))

    def __gt__(self, other: object) -> bool:
        return _known(settled(self.product)) > _known(_settled(other))

    __hash__ = None  # type: ignore[assignment]


def _settled(element: Any) -> int | None:
    return settled(element.product) if isinstance(element, Size) else int(element)


def _known(size: int | None) -> int:
    if size is None:
        refuse(
            "it compares a size that a call decides. Pass shapes={name: sizes} with sizes of the "
            "inputs"
        )
    return size


def is_of(size: int | Size | None, product: Product) -> bool:
    """Whether a size is that of an axis, however large.

    Args:
      size: the size.
      product: the factors of the axis.

    Returns:
      True if they are the same.
    """
    return size.product == product if isinstance(size, Size) else size == size_of(product)


def sizes_array(sizes: Sequence[int | Size]) -> Array:
    """Sizes of axes as an array.

    Args:
      sizes: numbers, and sizes that a call decides.

    Returns:
      int64 if all are known, else of objects.
    """
    if all(isinstance(size, int) for size in sizes):
        return np.array(sizes, np.int64)
    found = np.empty(len(sizes), object)
    found[:] = sizes
    return found


def of_axis(product: Product) -> int | Size:
    """The size of an axis.

    Args:
      product: its factors.

    Returns:
      The number, where it is known.
    """
    known = size_of(product)
    return Size(product) if known is None else known


Sizes = tuple[int | Size | None, ...]  # of axes; None: any that fits


@dataclasses.dataclass(frozen=True)
class Filled:
    """A constant that is repeated along axes, whose sizes may depend on the call.

    Attributes:
      value: the element, an array without axes; or an array that NumPy's rules repeat.
      sizes: of its axes. None: it was moved, so they are not known.
    """

    value: Array
    sizes: Sizes | None = None

    @property
    def is_equal(self) -> bool:
        """Whether all elements are one."""
        return self.value.size == 1


@dataclasses.dataclass(frozen=True)
class Shifted:
    """Indices plus a number: what negative indices would be. Nothing may read it.

    Attributes:
      sizes: of its axes; None: they are not known.
    """

    sizes: Sizes | None


@dataclasses.dataclass(frozen=True)
class Missing:
    """What a node would make that a session does not compute."""


@dataclasses.dataclass(frozen=True)
class Squares:
    """The sum of the squares of arrays, of which the square root is a magnitude.

    Attributes:
      arrays: the arrays, one or two.
    """

    arrays: tuple[Traced, ...]


@dataclasses.dataclass(frozen=True)
class Length:
    """The square root of the sum of the squares of rows. An array divided by it has the length 1.

    Attributes:
      array: whose rows they are.
      axis: of the array, along which a row is.
      keeps: whether the axis is there, of size 1.
      floor: the least length; 0: there is none.
      is_square: whether the root is not taken.
    """

    array: Traced
    axis: int
    keeps: bool
    floor: float = 0.0
    is_square: bool = False


@dataclasses.dataclass(frozen=True)
class Quantized:
    """What a graph makes of an array to compute with integers of 8 bits.

    Attributes:
      array: the array; of a product that of the integers of the weights.
      kind: "integers", "scale" or "zero point" of the array, "product", which lacks a scale, or
        "codes", integers with a constant scale and zero point.
      numbers: by which a scale is multiplied; of codes their scale and zero point.
      scale_of: of a product the array whose scale it lacks.
    """

    array: Traced
    kind: str
    numbers: Any = 1.0
    scale_of: Traced | None = None


class OfMask:
    """What a graph makes of a mask of steps, or makes one of: no array of a session."""


@dataclasses.dataclass(frozen=True)
class Steps(OfMask):
    """The numbers of steps, from 0.

    Attributes:
      size: how many, which a call decides.
    """

    size: Size


# None: an operand that is left out.
# An array has numbers, or objects of which some are a `Size`.
Operand = Traced | Array | Filled | Squares | Length | Quantized | Shifted | Missing | OfMask | None


# The numbers of ONNX's types of floats that have all numbers of float32, and that of float16.
_WIDE, _HALF = (1, 11), 10


def castable(floats: Collection[int]) -> frozenset[int]:
    """The types that a `Cast` of floats can name without an effect in a session.

    A session computes in float32, also what a model of float16 rounds.

    Args:
      floats: the types of the model's own floats.

    Returns:
      The numbers of ONNX's types.
    """
    return frozenset([*_WIDE, _HALF] if {*floats} == {_HALF} else _WIDE)


@dataclasses.dataclass(frozen=True)
class Call:
    """A node with its operands.

    Attributes:
      node: the ``onnx.NodeProto``.
      attributes: by name.
      operands: what its inputs stand for.
      opset: the version of the default domain.
      used: for each output whether something reads it.
      label: the node in words.
      floats: as of `castable`.
      budget: counts the bytes of constants that nodes make.
    """

    node: Any
    attributes: Attributes
    operands: Sequence[Operand]
    opset: int
    used: Sequence[bool]
    label: str
    floats: frozenset[int]
    budget: Budget

    def operand(self, index: int) -> Operand:
        """An operand.

        Args:
          index: which one.

        Returns:
          What it stands for; None if it is absent.
        """
        return self.operands[index] if index < len(self.operands) else None

    def traced(self, index: int = 0) -> Traced:
        """An operand that the model computes from its inputs.

        Args:
          index: which one.

        Returns:
          The array.

        Raises:
          Refused: it is something else.
        """
        found = self.operand(index)
        if not isinstance(found, Traced):
            refuse(f"its operand {index} is {kind_of(found)}, not an array of the model's inputs")
        return found

    def constant(self, index: int, what: str) -> Array:
        """An operand that is a constant.

        Args:
          index: which one.
          what: its name in the message.

        Returns:
          The array.

        Raises:
          Refused: it is something else.
        """
        found = self.operand(index)
        if not isinstance(found, np.ndarray) or found.dtype == object:
            refuse(f"its {what} is {kind_of(found)}, not a constant")
        return found

    def whole_numbers(self, index: int, what: str) -> Array:
        """An operand that is a constant of integers; others are an error.

        Args:
          index: the operand.
          what: what it is called in messages.

        Returns:
          The array.
        """
        found = self.constant(index, what)
        if found.dtype.kind not in "iu":
            refuse(f"its {what} has the type {found.dtype}, which has no integers")
        return found

    def integers(self, index: int, name: str) -> list[int] | None:
        """Integers of an attribute, which later versions of ONNX made an operand.

        Args:
          index: the operand.
          name: of the attribute.

        Returns:
          The integers; None if they are absent.
        """
        found: Any = self.attributes.get(name)
        if found is None:
            if self.operand(index) is None:
                return None
            found = self.whole_numbers(index, name)
        return [int(each) for each in np.ravel(found)]

    def sizes(self, index: int, what: str) -> list[int | Size]:
        """An operand that has sizes of axes.

        Args:
          index: which one.
          what: its name in the message.

        Returns:
          The sizes.

        Raises:
          Refused: it is something else.
        """
        found = self.operand(index)
        if not isinstance(found, np.ndarray) or found.dtype != object:
            found = self.whole_numbers(index, what)
        return [each if isinstance(each, Size) else int(each) for each in found.ravel()]

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is 0 or 1.

        Args:
          name: of the attribute.
          default: its value where the version of the operator does not have it.

        Returns:
          Whether it is 1.

        Raises:
          Refused: it is another number.
        """
        value = self.attributes.get(name, int(default))
        if value not in (0, 1):
            refuse(f"its attribute {name} is {value}, not 0 or 1")
        return bool(value)

    def axis(self, rank: int) -> int:
        """The attribute axis.

        Args:
          rank: the number of axes.

        Returns:
          The axis, counted from the front.
        """
        return position(int(self.attributes["axis"]), rank)


class Operator(NamedTuple):
    """How an operator is computed.

    Attributes:
      function: adds the layers of a node, and returns what its outputs stand for.
      moves: whether it only moves elements of its first operand.
      of_integers: whether an operand may be integers of an input: it moves or reads indices.
      of_squares: whether it takes squares, of which the operands of others are sums.
      ignored: attributes without an effect on what is computed here: of training, of a precision or
        type that is not read, of an output that is not read, or what the weights say.
    """

    function: Callable[[Call], Sequence[Operand]]
    moves: bool = False
    of_integers: bool = False
    of_squares: bool = False
    ignored: tuple[str, ...] = ()


def sum_of(squares: Squares) -> Traced:
    """The sum of squares as an array.

    Args:
      squares: the squares.

    Returns:
      The array.
    """
    together = aligned(squares.arrays)
    products = [layers.Multiply()(value, value) for value in together.values]
    return together.combined(products[0] if len(products) == 1 else layers.Add()(*products))


def kind_of(operand: Operand) -> str:
    """What an operand is, in words.

    Args:
      operand: the operand.

    Returns:
      The words.
    """
    if operand is None:
        return "absent"
    if isinstance(operand, Traced):
        return "computed from the model's inputs"
    if isinstance(operand, Filled):
        return "an array of equal elements" if operand.is_equal else "a repeated constant"
    if isinstance(operand, Quantized):
        return f"the {operand.kind} of a quantised array"
    if isinstance(operand, OfMask):
        return "made of a mask of steps"
    if isinstance(operand, Length):
        return "the lengths of rows, by which a session only divides these rows"
    if isinstance(operand, Squares):
        return "a sum of squares"
    if isinstance(operand, Shifted):
        return "computed from integers of an input"
    if isinstance(operand, Missing):
        return "not computed"
    return "a size of the call" if operand.dtype == object else "a constant"
