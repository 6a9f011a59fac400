"""The internal description of a PyTorch module: its class, options and arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tf_lstm_ops._arrays import Array, as_numbers
from tf_lstm_ops._refusal import refused
from tf_lstm_ops.inference.layers import Layer, checks

# The orders of the axes of a tensor [B, T, C] in PyTorch. A session has the first one.
BTC, TBC, BCT = "[B, T, C]", "[T, B, C]", "[B, C, T]"
ORDERS = (BTC, TBC, BCT)
FEATURES_LAST = (BTC, TBC)


@dataclasses.dataclass(eq=False)
class Entry:
    """A module.

    Attributes:
      label: how messages call it.
      kind: the name of its class in torch.nn.
      options: by PyTorch's names, and "return_sequences" of a recurrent module.
      arrays: its parameters and buffers by PyTorch's names.
      module: the module itself; None if it comes from a state dict.
    """

    label: str
    kind: str
    options: Mapping[str, Any]
    arrays: Mapping[str, Array]
    module: Any = None

    def refuse(self, text: str) -> NoReturn:
        """Raises the error of a module that a session does not compute.

        Args:
          text: the reason, and what to do.

        Raises:
          Refused: always.
        """
        raise refused(text, self.label)

    def require(self, option: str, value: Any) -> None:
        """Refuses an option with another value than the only one that a session computes.

        Args:
          option: its name.
          value: the value.

        Raises:
          ValueError: it has another value.
        """
        given = self.options[option]
        if given != value:
            self.refuse(f"a session has {option}={value!r} only. Received: {option}={given!r}")

    def integer(self, option: str) -> int:
        """An option that is an integer, or a tuple of one.

        Args:
          option: its name.

        Returns:
          The integer.

        Raises:
          ValueError: it is neither.
        """
        return _integer(self, option, self.options[option])

    def pair(self, option: str) -> tuple[int, int]:
        """An option that is two integers that are not negative, or one for both.

        Args:
          option: its name.

        Returns:
          The two integers.

        Raises:
          ValueError: it is something else.
        """
        given = self.options[option]
        values = [*given] if isinstance(given, list | tuple) else [given, given]
        if len(values) == 1:
            values *= 2
        first, second = (_integer(self, option, value) for value in values[:2])
        if len(values) > 2 or min(first, second) < 0:
            self.refuse(f"{option} must be one or two sizes from 0 on. Received: {given!r}")
        return first, second

    def axis_is_of_features(self, rank: int) -> tuple[str, ...]:
        """The orders in which the axis `dim` is that of the features.

        Args:
          rank: the number of axes of the module's input.

        Returns:
          The orders.

        Raises:
          ValueError: it is that of the features in none.
        """
        dim = self.options["dim"]
        if dim in (-1, rank - 1) or (dim is None and rank == 2):
            return FEATURES_LAST
        if dim in (1, -2) and rank == 3:
            return (BCT,)
        self.refuse(f"dim must be the axis of the features. Received: dim={dim!r}")


def _integer(entry: Entry, option: str, value: Any) -> int:
    try:
        return checks.integer(option, value)
    except TypeError as error:
        entry.refuse(str(error))


Build = Callable[[Entry, str], Sequence[Layer]]
Orders = Callable[[Entry, int], Sequence[str]]


def all_orders(entry: Entry, rank: int) -> Sequence[str]:
    """The orders of a module that computes each element by itself.

    Args:
      entry: the module.
      rank: the number of axes of its input.

    Returns:
      All orders.
    """
    return ORDERS


def features_last(entry: Entry, rank: int) -> Sequence[str]:
    """The orders of a module of the last axis.

    Args:
      entry: the module.
      rank: the number of axes of its input.

    Returns:
      The orders.
    """
    return FEATURES_LAST


def channels_first(entry: Entry, rank: int) -> Sequence[str]:
    """The order of a module of channels and time.

    Args:
      entry: the module.
      rank: the number of axes of its input.

    Returns:
      The order.
    """
    return (BCT,)


def no_sizes(entry: Entry) -> Mapping[str, Any]:
    """The arguments of a module without arrays.

    Args:
      entry: the module.

    Returns:
      None at all.
    """
    return {}


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a session computes a class of torch.nn.

    Attributes:
      build: makes the layers of an entry. It takes the order of axes in PyTorch.
      arrays: the names of arrays that must be there.
      optional: those of arrays that may be missing.
      options: the arguments that no array tells, with PyTorch's defaults.
      unused: the arguments that arrays tell, or that change nothing in inference.
      attributes: what the class of PyTorch lists beside its arguments.
      orders: the orders of axes that an entry takes, if its input has 3 axes.
      follows: whether an entry takes the order of the module before it, and no other.
      ranks: the numbers of axes that its input may have; empty: any.
      sizes: the arguments of the class that the arrays of an entry tell.
    """

    build: Build
    arrays: Sequence[str] = ()
    optional: Sequence[str] = ()
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    unused: Sequence[str] = ()
    attributes: Sequence[str] = ()
    orders: Orders = all_orders
    follows: bool = False
    ranks: Sequence[int] = ()
    sizes: Callable[[Entry], Mapping[str, Any]] = no_sizes


def read_array(label: str, value: Any) -> Array:
    """An array of a module.

    Args:
      label: for messages.
      value: an array or a tensor.

    Returns:
      A copy. Types with fewer digits than float32 become float32.

    Raises:
      ValueError: it is neither.
    """
    array = as_numbers(label, value)
    is_short = array.dtype.kind != "f" or array.dtype.itemsize < 4
    return array.astype(np.float32) if is_short else array
