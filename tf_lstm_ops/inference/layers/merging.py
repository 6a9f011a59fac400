"""Layers of several inputs."""

from __future__ import annotations

from collections.abc import Sequence

from tf_lstm_ops.inference import file, graph
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers.base import Layer

_ANY = 1  # a step counts if it does in any of the inputs


def _any_mask(masks: Sequence[Value | None], batch_axes: int) -> Value | None:
    """The mask of steps that count in any input."""
    different = {mask.key: mask for mask in masks if mask is not None}
    if len(different) < 2:
        return masks[0]
    record = file.Layer("mask", file.MASKS, ints=(_ANY,))
    return graph.node(record, [*different.values()], batch_axes)[0]


class Concatenate(Layer):
    """Its inputs behind each other.

    Args:
      axis: along which: -1 for the last one, or from 1 on, where 1 is that behind the batch.
      name: for messages.

    Raises:
      ValueError: axis is another one.
    """

    def __init__(self, axis: int = -1, name: str | None = None) -> None:
        super().__init__(name)
        if axis != -1 and not 1 <= axis <= 5:
            raise ValueError(f"axis must be -1, or from 1 to 5. Received: axis={axis}")
        self._axis = axis

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Value:
        record = file.Layer(self.name, file.CONCATENATION, ints=(self._axis,))
        (y,) = graph.node(record, inputs, batch_axes)
        masks = [x.mask for x in inputs]
        if self._axis == 1 and any(mask and not mask.is_given for mask in masks):
            raise ValueError(
                f"layer {self.name} concatenates along time, and its inputs have masks, which a "
                "session does not concatenate"
            )
        # A step of an input without a mask counts, and so does that of the output.
        return y if self._axis == 1 or None in masks else y.with_mask(_any_mask(masks, batch_axes))


class _Combination(Layer):
    """Its inputs element by element; axes of size 1 are repeated as in NumPy.

    Args:
      name: for messages.
    """

    _mode: int

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Value:
        if len(inputs) < 2 or (self._mode == Subtract._mode and len(inputs) > 2):
            raise ValueError(
                f"layer {self.name} must have two inputs, or more if it is no difference. "
                f"Received: {len(inputs)}"
            )
        (y,) = graph.node(
            file.Layer(self.name, file.COMBINATION, ints=(self._mode,)), inputs, batch_axes
        )
        masks = [x.mask for x in inputs]
        return y if None in masks else y.with_mask(_any_mask(masks, batch_axes))


class Add(_Combination):
    """The sum of its inputs, element by element. Axes of size 1 are repeated as in NumPy.

    Args:
      name: for messages.
    """

    _mode = 0


class Subtract(_Combination):
    """The difference of two inputs, element by element. Axes of size 1 are repeated as in NumPy.

    Args:
      name: for messages.
    """

    _mode = 1


class Multiply(_Combination):
    """The product of its inputs, element by element. Axes of size 1 are repeated as in NumPy.

    Args:
      name: for messages.
    """

    _mode = 2


class Average(_Combination):
    """The average of its inputs, element by element. Axes of size 1 are repeated as in NumPy.

    Args:
      name: for messages.
    """

    _mode = 3


class Maximum(_Combination):
    """The maximum of its inputs, element by element. Axes of size 1 are repeated as in NumPy.

    Args:
      name: for messages.
    """

    _mode = 4


class Minimum(_Combination):
    """The minimum of its inputs, element by element. Axes of size 1 are repeated as in NumPy.

    Args:
      name: for messages.
    """

    _mode = 5
