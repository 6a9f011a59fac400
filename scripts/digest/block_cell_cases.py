"""LSTMBlockCell, BlockLSTM, BlockLSTMV2 and their gradient ops, also under the stock names."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import tensorflow as tf
from cases import LARGE, SMALL, TAILS, WIDE, Case, Draw, Results, Shape, described
from derivatives import first_order, second_order

import tf_lstm_ops

GRADIENT_OPS = {
    "LSTMBlockCell": "LSTMBlockCellGrad",
    "BlockLSTM": "BlockLSTMGrad",
    "BlockLSTMV2": "BlockLSTMGradV2",
}
PEEPHOLE = {"use_peephole": True, "cell_clip": 0.7}


class Call(NamedTuple):
    op: str
    shape: Shape = SMALL
    options: dict[str, Any] = {}  # noqa: RUF012
    steps: int | None = None  # seq_len_max; None for all
    second_order: bool = False
    stock: bool = False

    def case(self) -> Case:
        return Case(self.op, "lstm", described(self), self.run)

    def stock_case(self) -> Case:
        call = self._replace(stock=True)
        return Case(f"tf.{self.op}", "lstm", described(self), call.run, ("float16", "float32"))

    def run(self, draw: Draw) -> Results:
        if self.stock:
            tf_lstm_ops.stock.override()
        module = tf.raw_ops if self.stock else tf_lstm_ops.raw_ops
        derivatives = second_order if self.second_order else first_order
        given, constants = self._arguments(draw), self._constants()
        function = functools.partial(getattr(module, self.op), **constants, **self.options)
        results = derivatives(function, given, draw)

        # The gradient op, which takes the gradients of cs and h only.
        saved = results["forward"]._asdict()
        given |= {f"{name}_grad": draw(*saved[name].shape) for name in ("cs", "h")}
        if self.op == "LSTMBlockCell":
            del saved["h"]
        constants |= {**saved, "use_peephole": self.options.get("use_peephole", False)}
        name = GRADIENT_OPS[self.op]
        function = functools.partial(getattr(module, name), **constants)
        if self.second_order:
            return {**results, f"{name} and its gradient": first_order(function, given, draw)}
        return {**results, name: function(**given)}

    def _constants(self) -> dict[str, Any]:
        steps = self.shape.time if self.steps is None else self.steps
        return {} if self.op == "LSTMBlockCell" else {"seq_len_max": tf.constant(steps, tf.int64)}

    def _arguments(self, draw: Draw) -> dict[str, Any]:
        lead = [] if self.op == "LSTMBlockCell" else [self.shape.time]
        _, batch, inputs, units = self.shape
        return {
            "x": draw(*lead, batch, inputs),
            "cs_prev": draw(batch, units),
            "h_prev": draw(batch, units),
            "w": draw(inputs + units, 4 * units, scale=(inputs + units) ** -0.5),
            **{name: draw(units) for name in ("wci", "wcf", "wco")},
            "b": draw(4 * units),
        }


def cases() -> Iterator[Case]:
    for op in GRADIENT_OPS:
        for shape in (*TAILS, *LARGE, WIDE, SMALL._replace(inputs=0)):
            yield Call(op, shape).case()
            yield Call(op, shape, PEEPHOLE).case()
        yield Call(op, SMALL, {"cell_clip": -1.0}).case()
        if op != "BlockLSTMV2":
            yield Call(op, SMALL, {"forget_bias": -0.3}).case()
        if op != "LSTMBlockCell":
            yield from (Call(op, SMALL, PEEPHOLE, steps).case() for steps in (0, 1, 4))
        yield Call(op, SMALL, PEEPHOLE, second_order=True).case()


def stock_cases() -> Iterator[Case]:
    """The stock names, which the kernels of this package serve from the first of these cases on."""
    for op in ("LSTMBlockCell", "BlockLSTM"):
        yield Call(op, SMALL, PEEPHOLE).stock_case()
