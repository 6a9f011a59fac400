"""Two recurrent layers as one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops import _cells
from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers import checks
from tf_lstm_ops.inference.layers.merging import Add, Average, Concatenate, Multiply
from tf_lstm_ops.inference.layers.recurrent import Recurrent

_MERGING = {"concat": Concatenate, "sum": Add, "mul": Multiply, "ave": Average}
# The fields in which two directions differ.
_DIFFERENT = ("name", "directions", "flags", "arrays", "initial")


def _both(name: str, first: file.Layer, second: file.Layer, merge_mode: str) -> file.Layer:
    """The record of two directions."""
    _require_directions(first, second)
    if differing := _differing(first, second):
        raise ValueError(f"its two layers have different {', '.join(differing)}")
    return dataclasses.replace(
        first,
        name=name,
        directions=file.BOTH,
        merge=file.MERGE_MODES[merge_mode],
        arrays=[*first.arrays, *second.arrays],
        initial=_initial_of_both(first, second),
    )


def _require_directions(first: file.Layer, second: file.Layer) -> None:
    if (first.directions, second.directions) != (file.FORWARDS, file.BACKWARDS):
        raise ValueError("its forward layer has go_backwards=True")


def _differing(first: file.Layer, second: file.Layer) -> list[str]:
    """The fields for which a record of two directions has one value."""
    fields = [f.name for f in dataclasses.fields(first) if f.name not in _DIFFERENT]
    differing = [name for name in fields if getattr(first, name) != getattr(second, name)]
    if first.flags != second.flags & ~file.ORDER_OF_COMPUTATION:
        differing.append("options")
    return differing


def merged(
    name: str, first: file.Layer, second: file.Layer, merge_mode: str | None, return_state: bool
) -> Recurrent:
    """A layer of two directions with any options.

    Args:
      name: of the layer.
      first: the record of the layer that reads forwards.
      second: that of the layer that reads backwards.
      merge_mode: "concat", "sum", "mul" or "ave"; None: the layer returns the sequences of both.
      return_state: whether it returns the final states behind them.

    Returns:
      The layer.

    Raises:
      ValueError: the layers have other directions.
    """
    _require_directions(first, second)
    if merge_mode is None or _differing(first, second):
        return _TwoLayers(name, first, second, merge_mode, return_state)
    return Recurrent([_both(name, first, second, merge_mode)], name, return_state)


class _TwoLayers(Recurrent):
    """Two layers, and one that merges their outputs; None: both are returned."""

    def __init__(
        self,
        name: str,
        first: file.Layer,
        second: file.Layer,
        merge_mode: str | None,
        return_state: bool,
    ) -> None:
        second = dataclasses.replace(second, flags=second.flags & ~file.ORDER_OF_COMPUTATION)
        super().__init__([first, second], name, return_state)
        self._merge = None if merge_mode is None else _MERGING[merge_mode](name=name)

    def _apply(self, inputs: Sequence[Value], batch_axes: int) -> Any:
        x, *states = inputs
        outputs, finals = list[Value](), list[Value]()
        for record in self.records:
            part = Recurrent([record], self.name, self._return_state)
            own, states = states[: part.state_count], states[part.state_count :]
            found = part.apply([x, *own], batch_axes)
            y, *new = found if isinstance(found, tuple) else (found,)
            outputs.append(y)
            finals += new
        if self._merge is not None:
            outputs = [self._merge.apply(outputs, batch_axes)]
        return (*outputs, *finals) if len(outputs) + len(finals) > 1 else outputs[0]


def _initial_of_both(first: file.Layer, second: file.Layer) -> tuple[Any, ...]:
    if not first.initial and not second.initial:
        return ()
    sizes = (first.hidden_size, first.units)[: len(_cells.BY_NUMBER[first.cell].states)]
    own = [
        each.initial or [np.zeros((1, size), np.float32) for size in sizes]
        for each in (first, second)
    ]
    return tuple(np.concatenate(pair) for pair in zip(*own, strict=True))


class Bidirectional(Recurrent):
    """Two recurrent layers, of which the second reads the sequence backwards.

    Args:
      forward: a layer of one direction.
      backward: a layer with go_backwards=True, and with the same options.
      merge_mode: "concat", "sum", "mul" or "ave".
      return_state: whether the final states are returned: those of `forward`, then of `backward`.
      name: for messages.

    Raises:
      ValueError: a layer has several layers, or their options differ.
      TypeError: they are no recurrent layers.
    """

    def __init__(
        self,
        forward: Recurrent,
        backward: Recurrent,
        merge_mode: str = "concat",
        return_state: bool = False,
        name: str | None = None,
    ) -> None:
        parts = (forward, backward)
        if not all(isinstance(part, Recurrent) for part in parts):
            raise TypeError(
                "forward and backward must be LSTM, GRU or SimpleRNN. Received: "
                f"{[type(part).__name__ for part in parts]}"
            )
        if any(len(part.records) > 1 for part in parts):
            raise ValueError("forward and backward must have one layer each")
        checks.choice("merge_mode", merge_mode, [*file.MERGE_MODES])
        first, second = (
            dataclasses.replace(part.records[0], flags=part.records[0].flags & ~file.RETURNS_STATE)
            for part in parts
        )
        record = _both(name or "Bidirectional", first, second, merge_mode)
        super().__init__([record], name, return_state)
