"""What a name of an ONNX graph stands for while the graph is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.tracing.alignment import aligned
from tf_lstm_ops.inference.tracing.axes import Product, Traced, position
from tf_lstm_ops.onnx_graph import tensors
from tf_lstm_ops.onnx_graph.attributes import Attributes

Array = npt.NDArray[Any]


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of axes that are not all known before a call.

    Attributes:
      sizes: each a number, or the factors of an axis.
      is_scalar: whether it is one number rather than a vector.
    """

    sizes: tuple[int | Product, ...]
    is_scalar: bool = False


@dataclasses.dataclass(frozen=True)
class Filled:
    """An array of equal elements, of sizes that may depend on the call.

    Attributes:
      value: the elements.
      sizes: as of `Sizes`; None in them: any that fits. None: it was moved, so they are not known.
    """

    value: float
    sizes: tuple[int | Product | None, ...] | None = None


@dataclasses.dataclass(frozen=True)
class Shifted:
    """Indices plus a number: what negative indices would be. Nothing may read it."""


@dataclasses.dataclass(frozen=True)
class Squares:
    """The sum of the squares of arrays, of which the square root is a magnitude.

    Attributes:
      arrays: the arrays, one or two.
    """

    arrays: tuple[Traced, ...]


# None: an operand that is left out.
Operand = Traced | Array | Sizes | Filled | Squares | Shifted | None


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


def cast(filled: Filled, to: int) -> Filled:
    """An array of equal elements in another type.

    Args:
      filled: the array.
      to: the number of ONNX's type.

    Returns:
      The array, whose element may be rounded.
    """
    with np.errstate(all="ignore"):
        value = np.asarray(filled.value).astype(tensors.dtype_of(to))
    return dataclasses.replace(filled, value=float(value))


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
    """

    node: Any
    attributes: Attributes
    operands: Sequence[Operand]
    opset: int
    used: Sequence[bool]
    label: str
    floats: frozenset[int]

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
            refuse(f"its operand {index} is {_kind(found)}, not an array of the model's inputs")
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
        if not isinstance(found, np.ndarray):
            refuse(f"its {what} is {_kind(found)}, not a constant")
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

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is 0 or 1.

        Args:
          name: of the attribute.
          default: its value where it is absent.

        Returns:
          Whether it is 1.

        Raises:
          Refused: it is another number.
        """
        value = self.attributes.get(name, int(default))
        if value not in (0, 1):
            refuse(f"its attribute {name} is {value}, not 0 or 1")
        return bool(value)

    def axis(self, rank: int, default: int) -> int:
        """The attribute axis.

        Args:
          rank: the number of axes.
          default: its value where it is absent.

        Returns:
          The axis, counted from the front.
        """
        return position(int(self.attributes.get("axis", default)), rank)


Function = Callable[[Call], Sequence[Operand]]


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


def _kind(operand: Operand) -> str:
    if operand is None:
        return "absent"
    if isinstance(operand, Traced):
        return "computed from the model's inputs"
    if isinstance(operand, Filled):
        return "an array of equal elements"
    return "a size of the call" if isinstance(operand, Sizes) else "a constant"
