"""The internal description of a PyTorch module: its class, options and arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tf_lstm_ops._arrays import Array, as_numbers
from tf_lstm_ops._refusal import refuse, require
from tf_lstm_ops.inference.layers import Layer
from tf_lstm_ops.inference.reader import Reader

# The orders of the axes of a tensor [B, T, C] in PyTorch. A session has the first one.
BTC, TBC, BCT = "[B, T, C]", "[T, B, C]", "[B, C, T]"
ORDERS = (BTC, TBC, BCT)
FEATURES_LAST = (BTC, TBC)
CHANNELS_FIRST = (BCT,)
_IGNORED = ("device", "dtype", "inplace")  # options of any class


@dataclasses.dataclass(eq=False)
class Entry:
    """A module.

    Attributes:
      label: how messages call it.
      name: of its class in torch.nn.
      kind: how a session computes it.
      options: by PyTorch's names, and those that a list adds.
      tensors: by PyTorch's names functions that read its parameters and buffers.
      missing: why an array is missing.
      module: the module itself; None if it comes from a state dict.
      arrays: those that were read.
      sizes: the options that arrays tell.
      layers: what computes it.
    """

    label: str
    name: str
    kind: Kind
    options: Reader
    tensors: Reader
    missing: Callable[[str], str]
    module: Any = None
    arrays: dict[str, Array] = dataclasses.field(default_factory=dict)
    sizes: dict[str, Any] = dataclasses.field(default_factory=dict)
    layers: Sequence[Layer] = ()

    def build(self) -> None:
        """Makes the layers.

        Raises:
          ValueError: a session does not compute the module.
        """
        self.options.ignore((*_IGNORED, *self.kind.ignored))
        self.layers = self.kind.build(self)

    def optional(self, name: str) -> Array | None:
        """An array.

        Args:
          name: PyTorch's.

        Returns:
          The array; None: there is none.

        Raises:
          ValueError: it is a plain attribute of the module.
        """
        read = self.tensors.take(name)
        if read is not None:
            self.arrays[name] = read()
            return self.arrays[name]
        require(
            getattr(self.module, name, None) is None,
            f"its {name} is neither a parameter nor a buffer, so that PyTorch does not save it. "
            f"Write: module.{name} = torch.nn.Parameter(module.{name})",
        )
        return None

    def array(self, name: str, rank: int | None = None) -> Array:
        """An array that must be there.

        Args:
          name: PyTorch's.
          rank: the number of its axes; None: any.

        Returns:
          The array.

        Raises:
          ValueError: there is none, or it has another number of axes.
        """
        found = self.optional(name)
        if found is None:
            refuse(self.missing(name))
        if rank not in (None, found.ndim):
            refuse(f"{name} must have {rank} axes. Received: {found.shape}")
        return found

    def tell(self, **sizes: Any) -> None:
        """Refuses options that are not those of the arrays.

        PyTorch does not look at those of a module, but for those that are taken.

        Args:
          **sizes: the options that the arrays tell.

        Raises:
          ValueError: an option is another one.
        """
        self.sizes |= sizes
        for name, known in sizes.items():
            given = self.options.values.get(name)
            if isinstance(given, list | tuple) and len(given) == 1:
                given = given[0]
            counts = self.module is None or name in self.options.taken
            if counts and given is not None and given != known:
                refuse(f"its arrays have {name}={known!r}. Received: {name}={given!r}")
        self.options.ignore(sizes)


Build = Callable[[Entry], Sequence[Layer]]


@dataclasses.dataclass(frozen=True)
class Kind:
    """How a session computes a class of torch.nn.

    Attributes:
      build: reads an entry, and makes its layers.
      ignored: options that change nothing in inference.
      listed: the options that only a list has.
      orders: the orders of axes that it takes, if its input has 3 axes; or a function of the
        entry and the number of axes of its input.
      follows: whether an entry takes the order of the module before it, and no other.
      ranks: the numbers of axes that its input may have; empty: any.
      placed: the layers of an entry behind an order of axes, if they depend on it.
    """

    build: Build
    ignored: Sequence[str] = ()
    listed: Sequence[str] = ()
    orders: Sequence[str] | Callable[[Entry, int], Sequence[str]] = ORDERS
    follows: bool = False
    ranks: Sequence[int] = ()
    placed: Callable[[Entry, str], Sequence[Layer]] | None = None


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
