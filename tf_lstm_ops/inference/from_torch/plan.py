"""The chain of layers of modules, and the orders of axes between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tf_lstm_ops._refusal import naming, refuse
from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.from_torch.entry import BCT, BTC, ORDERS, Entry
from tf_lstm_ops.inference.layers import Layer


@dataclasses.dataclass(eq=False)
class Step:
    """An element of a chain.

    Attributes:
      element: the module, or a layer of a session.
      layers: what computes it.
      order: the order of its axes in PyTorch; empty without 3 axes.
    """

    element: Entry | Layer
    layers: Sequence[Layer]
    order: str = ""


class Plan:
    """Makes the steps of a chain.

    PyTorch's tensors have several orders of axes, and a session has one. In a list each module gets
    the output of the one before in the order that it wants. In a Sequential nothing changes the
    order, so modules that want different ones are an error.

    Args:
      rank: the number of axes of the input, with the batch.
      steps_are_known: whether the input has a fixed number of steps.

    Attributes:
      steps: the steps so far.
    """

    def __init__(self, rank: int, steps_are_known: bool) -> None:
        self.steps: list[Step] = []
        self._rank, self._steps_are_known = rank, steps_are_known
        self._orders: Sequence[str] = ORDERS  # those that all of the current run take
        self._run: list[Step] = []
        self._sequential_has_order = False

    def begin_element(self) -> None:
        """Begins an element of a list: a module, a Sequential or a layer."""
        self._sequential_has_order = False

    def add_layer(self, layer: Layer) -> None:
        """Adds a layer of a session, whose axes are [B, T, C].

        Args:
          layer: the layer.
        """
        self._change_orders((BTC,))
        self._add(Step(layer, [layer]))

    def add(self, entry: Entry) -> None:
        """Adds a module.

        Args:
          entry: the module.

        Raises:
          ValueError: a session does not compute it here.
        """
        with naming(entry.label):
            self._add_entry(entry)

    def _add_entry(self, entry: Entry) -> None:
        kind = entry.kind
        if kind.ranks and self._rank not in kind.ranks:
            refuse(
                f"its input has {self._rank} axes, must have {' or '.join(map(str, kind.ranks))}; "
                "the first axis of a session is always the batch"
            )
        orders = kind.orders
        wanted = orders(entry, self._rank) if callable(orders) else orders
        if self._rank == 3 or entry.name == "Embedding":
            self._narrow(entry, wanted)
        order = self._orders[0] if self._rank == 3 else ""
        if entry.name == "Flatten" and order and not self._steps_are_known:
            refuse(
                "it makes the number of steps part of the features, so this number must be known. "
                "Begin the list with layers.Input((T, F)), T steps of F features"
            )
        self._add(Step(entry, kind.placed(entry, order) if kind.placed else entry.layers, order))

    def _narrow(self, entry: Entry, wanted: Sequence[str]) -> None:
        """Keeps the orders that a module takes, or begins a run of another order."""
        # Where nothing has said the order yet, the axes are those of the session's input.
        known = self._orders[:1] if entry.kind.follows else self._orders
        if any(order in wanted for order in known):
            self._orders = [order for order in self._orders if order in wanted]
        else:
            self._require_change(entry, wanted)
            self._change_orders(wanted)
        if len(wanted) < len(ORDERS):
            self._sequential_has_order = True

    def _require_change(self, entry: Entry, wanted: Sequence[str]) -> None:
        here = self._orders[0]
        if entry.kind.follows:
            refuse(
                f"its dim={entry.options.take('dim')} is not the axis of the features of {here}, "
                "the order of axes that it gets from what is before it. In your forward an axis "
                "may move: use the layer of tf_lstm_ops.inference.layers in its place, which "
                "computes the features"
            )
        if self._sequential_has_order:
            refuse(
                f"it takes {wanted[0]}, and the module before it in the Sequential gives {here}. "
                "PyTorch would compute another axis. If your forward moves the axes, pass a list "
                "of the modules"
            )

    def _change_orders(self, orders: Sequence[str]) -> None:
        self.finish()
        self._orders = orders

    def finish(self) -> None:
        """Sets the order of the steps that have the same one."""
        for step in self._run:
            step.order = self._orders[0]
        self._run = []

    def _add(self, step: Step) -> None:
        if self._rank == 3:
            self._run.append(step)
        self.steps.append(step)
        for layer in step.layers:
            self._follow(layer)
        if self._rank != 3:
            self.finish()
            self._orders = ORDERS

    def _follow(self, layer: Any) -> None:
        """Sets the number of axes behind a layer."""
        for part in getattr(layer, "_parts", ()):  # of a Chain
            self._follow(part)
        records = getattr(layer, "records", None) or [getattr(layer, "record", None)]
        record = records[-1] or getattr(layer, "_record", None)
        if record is None:
            return
        if record.kind == file.EMBEDDING:
            self._rank += 1
        elif record.kind == file.RESHAPE:
            self._rank, self._steps_are_known = 1 + record.ints[0], True
        elif record.kind == file.REPETITION:
            self._rank, self._steps_are_known = 3, True
        elif record.kind == file.GLOBAL_POOLING:
            self._rank, self._steps_are_known = self._rank - (not record.ints[1]), True
        elif record.kind == file.RECURRENT and not record.flags & file.RETURNS_SEQUENCE:
            self._rank = 2


def axes(order: str) -> tuple[int, int] | None:
    """The axes of [B, T, C] to exchange for an order, and back.

    Args:
      order: one of `ORDERS`, or empty.

    Returns:
      The two axes; None: nothing changes.
    """
    if not order or order == BTC:
        return None
    return (1, 2) if order == BCT else (0, 1)
