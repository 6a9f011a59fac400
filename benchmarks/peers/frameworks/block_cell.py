"""LSTMBlockCell of this package and of TensorFlow: a loop over a sequence, and single steps."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import tensorflow as tf

from peers.cases import Problem, Row, compared_output
from peers.frameworks import Prepared
from peers.frameworks.tensorflow import block_cells, floats, set_threads
from tf_lstm_ops._arrays import Array

CHAIN = 100  # single steps in one tf.function, to make the cost of entering it negligible
OPTIONS = {"forget_bias": 0.0, "cell_clip": 0.0}


def build(row: Row, problem: Problem, threads: int, *, ours: bool = False) -> Prepared:
    """Makes the call of the row's task.

    Args:
      row: the row.
      problem: its data.
      threads: the number of threads.
      ours: whether to call this package's op.

    Returns:
      The call to time.
    """
    set_threads(threads)
    raw_ops = importlib.import_module("tf_lstm_ops").raw_ops if ours else tf.raw_ops
    (cell,) = block_cells(problem, "ICFO")
    builders = {"inference": _loop, "step": _steps, "step gradient": _gradient_steps}
    return builders[row.task](raw_ops, cell, row, problem)


def _loop(raw_ops: Any, cell: Any, row: Row, problem: Problem) -> Prepared:
    x = tf.constant(np.swapaxes(problem.x, 0, 1))
    zero = tf.zeros([row.batch, row.units])

    @tf.function
    def inference(x: Any) -> Any:
        def body(t: Any, cs: Any, h: Any, outputs: Any) -> Any:
            step = raw_ops.LSTMBlockCell(x=x[t], cs_prev=cs, h_prev=h, **cell, **OPTIONS)
            return t + 1, step.cs, step.h, outputs.write(t, step.h)

        outputs = tf.TensorArray(tf.float32, row.time, element_shape=zero.shape)
        start = tf.constant(0), zero, zero, outputs
        return tf.while_loop(lambda t, *_: t < row.time, body, start)[-1].stack()

    def results(output: Any) -> dict[str, Array]:
        return compared_output(np.swapaxes(floats(output), 0, 1), problem)

    return Prepared(lambda: inference(x), results)


def _steps(raw_ops: Any, cell: Any, row: Row, problem: Problem) -> Prepared:
    """CHAIN steps with the same x, each from the state of the previous one."""
    x = tf.constant(problem.x[:, 0])

    @tf.function
    def chain(x: Any) -> Any:
        cs = h = tf.zeros([row.batch, row.units])
        for _ in range(CHAIN):
            step = raw_ops.LSTMBlockCell(x=x, cs_prev=cs, h_prev=h, **cell, **OPTIONS)
            cs, h = step.cs, step.h
        return cs, h

    return Prepared(lambda: chain(x), _named("cs", "h"), CHAIN)


def _gradient_steps(raw_ops: Any, cell: Any, row: Row, problem: Problem) -> Prepared:
    """CHAIN times the gradient of one step, each from the previous one's cs_prev_grad."""
    x, zero = tf.constant(problem.x[:, 0]), tf.zeros([row.batch, row.units])
    given = {"x": x, "cs_prev": zero + 0.5, "h_prev": zero, **cell}
    step = raw_ops.LSTMBlockCell(**given, **OPTIONS)
    given |= {name: getattr(step, name) for name in ("i", "cs", "f", "o", "ci", "co")}
    h_grad = tf.constant(problem.output_grad[:, 0])

    @tf.function
    def chain(h_grad: Any) -> Any:
        cs_grad = zero
        for _ in range(CHAIN):
            found = raw_ops.LSTMBlockCellGrad(
                **given, cs_grad=cs_grad, h_grad=h_grad, use_peephole=False
            )
            cs_grad = found.cs_prev_grad
        return cs_grad, found.dicfo

    return Prepared(lambda: chain(h_grad), _named("cs_prev_grad", "dicfo"), CHAIN)


def _named(*names: str) -> Any:
    return lambda found: {n: floats(value) for n, value in zip(names, found, strict=True)}
