"""Symbolic values of a model, and the nodes that compute them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tf_lstm_ops.inference import file


class Value:
    """An array of a model whose elements are not known: an input, or the output of a layer.

    Layers of `tf_lstm_ops.inference.layers` are called on values. `layers.Input` makes the first
    ones.

    Args:
      node: what computes it; of an input a `file.Input`.
      index: which output of the node.
      mask: the value that says which steps count; None: all do.
      stopped: a layer of Keras that takes a mask away which layers of a session pass on; None.

    Attributes:
      node, index, mask, stopped: the arguments.
    """

    def __init__(
        self,
        node: Node | file.Input,
        index: int = 0,
        mask: Value | None = None,
        stopped: Any = None,
    ) -> None:
        self.node, self.index, self.mask, self.stopped = node, index, mask, stopped

    def with_mask(self, mask: Value | None) -> Value:
        """The same value with another mask.

        Args:
          mask: the mask.

        Returns:
          The value.
        """
        return Value(self.node, self.index, mask)

    @property
    def key(self) -> tuple[int, int]:
        """What two objects of the same value have in common."""
        return id(self.node), self.index

    @property
    def is_given(self) -> bool:
        """Whether it is an input or the mask of a call."""
        return isinstance(self.node, file.Input)


@dataclasses.dataclass(eq=False)
class Node:
    """A call of a layer.

    Attributes:
      layer: the record.
      operands: what it reads; None: absent.
      batch_axes: how many axes count as the batch.
      outputs: the number of values that it computes.
    """

    layer: file.Layer
    operands: list[Value | None]
    batch_axes: int = 1
    outputs: int = 1


def is_of_call(mask: Value | None) -> bool:
    """Whether a mask is that of a call, or a combination of such masks.

    Args:
      mask: the mask of a value; None: none.

    Returns:
      Whether a call may omit it.
    """
    if mask is None or mask.is_given:
        return True
    made: Any = mask.node
    return made.layer.kind == file.MASKS and all(map(is_of_call, made.operands))


def mask_axes(mask: Value) -> int:
    """The number of axes of a mask.

    Args:
      mask: the mask of a value.

    Returns:
      2 for one of the steps of a sequence; more within a TimeDistributed, and where an Embedding
      has indices with more axes.
    """
    made: Any = mask.node
    if mask.is_given:
        return 2
    if made.layer.kind == file.EMBEDDING:
        return 1 + len(made.operands[0].node.dims)
    if made.layer.kind == file.MASKS:
        return max(mask_axes(each) for each in made.operands)
    return int(made.batch_axes) + 1


def input_value(given: file.Input) -> Value:
    """An input. Its mask is that of the call.

    Args:
      given: the input.

    Returns:
      The value.
    """
    return Value(given, 0, Value(given, 1))


def node(
    layer: file.Layer,
    operands: Sequence[Value | None],
    batch_axes: int = 1,
    outputs: int = 1,
) -> list[Value]:
    """A call of a layer.

    Args:
      layer: the record.
      operands: what it reads; None: absent.
      batch_axes: how many axes count as the batch.
      outputs: the number of values that it computes.

    Returns:
      The values, without masks.
    """
    made = Node(layer, [*operands], batch_axes, outputs)
    return [Value(made, k) for k in range(outputs)]
