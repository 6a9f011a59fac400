"""A mask around recurrent nodes of ONNX, which have the numbers of valid steps instead.

The valid steps of a row move to its front, in the order in which the layer computes them, and the
outputs move back. `export.onnx` writes these nodes, and `Session.from_onnx` finds them.
B batch, T time, D 1, I and H features. Values are whatever a `Builder` returns.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

import numpy as np

FLOAT, INT32, INT64, BOOL = 1, 6, 7, 9  # the numbers of ONNX's types
_FAR = np.iinfo(np.int64).max


class Builder(abc.ABC):
    """Adds nodes to a graph, whose outputs have the type of the layer by default."""

    @abc.abstractmethod
    def constant(self, value: Any) -> Any:
        """A constant.

        Args:
          value: an array or a number of NumPy.

        Returns:
          The value.
        """

    @abc.abstractmethod
    def add(
        self,
        kind: str,
        inputs: Sequence[Any],
        dtype: Any = None,
        output: int = 0,
        **attributes: Any,
    ) -> Any:
        """A node.

        Args:
          kind: the operator.
          inputs: values.
          dtype: the number of the output's type; None: that of the layer.
          output: the index of the output.
          **attributes: of the node.

        Returns:
          The value of the output.
        """

    def integers(self, *values: int) -> Any:
        """A constant of type int64.

        Args:
          *values: its elements.

        Returns:
          The value, [n].
        """
        return self.constant(np.array(values, np.int64))

    def unsqueeze(self, value: Any, axis: int, dtype: Any = None) -> Any:
        """A value with a further axis of size 1.

        Args:
          value: the value.
          axis: the axis in the result.
          dtype: as of `add`.

        Returns:
          The value.
        """
        return self.add("Unsqueeze", [value, self.integers(axis)], dtype)

    def squeeze(self, value: Any, axis: int) -> Any:
        """A value without an axis of size 1.

        Args:
          value: the value.
          axis: the axis.

        Returns:
          The value.
        """
        return self.add("Squeeze", [value, self.integers(axis)])

    def batch_first(self, y: Any) -> Any:
        """The output of a recurrent node with the batch first.

        Args:
          y: [T, D, B, H].

        Returns:
          [B, T, H].
        """
        return self.add("Transpose", [self.squeeze(y, 1)], perm=[1, 0, 2])


class Packing:
    """Moves the valid steps of each row to its front and back.

    A runtime that ignores the lengths, such as OpenVINO with unknown sizes, computes further steps
    after the valid ones. Only the final cell state depends on the lengths.

    Args:
      build: adds the nodes.
      mask: bool [B, T].
      backwards: whether the layer computes the last step first.

    Attributes:
      lengths: the number of valid steps, int32 [B].
    """

    def __init__(self, build: Builder, mask: Any, backwards: bool) -> None:
        self._build, self._mask, self._backwards = build, mask, backwards
        valid = self._integer("Cast", mask, to=INT64)
        # The number of valid steps that are computed up to each step, itself included, [B, T]; and
        # of the whole row, [B].
        axis = build.constant(np.int64(1))  # of rank 0, unlike the axes of other operators
        self._rank = self._integer("CumSum", valid, axis, reverse=int(backwards))
        self._count = self._integer("ReduceSum", valid, build.integers(1), keepdims=0)
        self.lengths = build.add("Cast", [self._count], INT32, to=INT32)

    def pack(self, x: Any) -> Any:
        """The input of the node.

        Args:
          x: [B, T, I].

        Returns:
          [T, B, I].
        """
        build = self._build
        order = self._integer("Where", self._mask, self._rank, build.integers(_FAR))
        bounds = [build.integers(v) for v in (1, 2, 0)]
        time = self._integer("Slice", self._integer("Shape", self._mask), *bounds)
        steps = self._integer("TopK", order, time, output=1, axis=1, largest=0)
        return build.add("Transpose", [self._gather(x, steps)], perm=[1, 0, 2])

    def sequence(self, y: Any, zero_output: bool) -> Any:
        """The output of each step.

        Args:
          y: of the node, [T, D, B, H].
          zero_output: whether it is zero where the mask is False; else it is the output that was
            computed before.

        Returns:
          [B, T, H].
        """
        build, valid = self._build, self._mask
        if not zero_output:
            valid = build.add("Greater", [self._rank, build.integers(0)], BOOL)
        packed = self._gather(build.batch_first(y), self._before(self._rank))
        return self._where(build.unsqueeze(valid, 2, BOOL), packed)

    def last(self, y: Any, zero_output: bool) -> Any:
        """The output of the step that is computed last.

        Args:
          y, zero_output: as of `sequence`.

        Returns:
          [B, H].
        """
        build, valid = self._build, self._any_valid()
        if zero_output:
            bounds = (0, 1) if self._backwards else (-1, _FAR)
            slices = [build.integers(v) for v in (*bounds, 1)]
            valid = build.add("Slice", [self._mask, *slices], BOOL)
        return self._where(valid, build.squeeze(self._last(y), 1))

    def states(self, outputs: Sequence[Any], initial: Sequence[Any]) -> list[Any]:
        """The final states.

        Args:
          outputs: Y [T, D, B, H] and, of an LSTM, Y_c [D, B, H] of the node.
          initial: the initial states, which rows without valid steps keep.

        Returns:
          [D, B, H] each.
        """
        build, valid = self._build, self._any_valid()
        last = build.add("Transpose", [self._last(outputs[0])], perm=[1, 0, 2])
        pairs = zip([last, *outputs[1:]], initial, strict=True)
        return [build.add("Where", [valid, *pair]) for pair in pairs]

    def _integer(self, kind: str, *inputs: Any, **attributes: Any) -> Any:
        return self._build.add(kind, [*inputs], INT64, **attributes)

    def _where(self, condition: Any, value: Any) -> Any:
        return self._build.add("Where", [condition, value, self._build.constant(np.float32(0))])

    def _before(self, count: Any) -> Any:
        build, zero = self._build, self._build.integers(0)
        return self._integer("Max", self._integer("Sub", count, build.integers(1)), zero)

    def _last(self, y: Any) -> Any:
        """The last valid one of the packed outputs, [B, 1, H]; any where there is none."""
        build = self._build
        last = build.unsqueeze(self._before(self._count), 1, INT64)
        return self._gather(build.batch_first(y), last)

    def _any_valid(self) -> Any:
        """[B, 1]."""
        count = self._build.unsqueeze(self._count, 1, INT64)
        return self._build.add("Greater", [count, self._build.integers(0)], BOOL)

    def _gather(self, values: Any, index: Any) -> Any:
        """values[b, index[b, t]] for values [B, T, N] and index [B, T]."""
        index = self._build.unsqueeze(index, 2, INT64)
        return self._build.add("GatherND", [values, index], batch_dims=1)
