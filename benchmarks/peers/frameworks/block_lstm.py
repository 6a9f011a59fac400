"""Stock BlockLSTMV2: one op per sequence."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from peers.cases import Problem, Row, compared_output
from peers.frameworks import Prepared
from peers.frameworks.layers import run_layers
from peers.frameworks.tensorflow import block_cells, floats, set_threads
from tf_lstm_ops._arrays import Array


def build(row: Row, problem: Problem, threads: int) -> Prepared:
    """Makes a call of one op per layer direction.

    In training the op's own gradients are timed. They are not compared, because they are wrong.

    Args:
      row: the row.
      problem: its data.
      threads: the number of threads.

    Returns:
      The call to time.
    """
    set_threads(threads)
    cells = block_cells(problem, "IFCO")
    x, output_grad = (tf.constant(np.swapaxes(a, 0, 1)) for a in (problem.x, problem.output_grad))
    zero = tf.zeros([row.batch, row.units])

    def run(x: Any, cell: Any) -> Any:
        time = tf.constant(row.time, tf.int64)
        return tf.raw_ops.BlockLSTMV2(
            seq_len_max=time, x=x, cs_prev=zero, h_prev=zero, cell_clip=0.0, **cell
        ).h

    run_all = run_layers(run, lambda x: tf.reverse(x, [0]), lambda both: tf.concat(both, -1))

    @tf.function
    def inference(x: Any) -> Any:
        return run_all(x, cells, row.directions)

    @tf.function
    def training(x: Any) -> Any:
        sources = [x, [[cell["w"], cell["b"]] for cell in cells]]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            output = run_all(x, cells, row.directions)
        return output, tape.gradient(output, sources, output_gradients=output_grad)

    def results(output: Any) -> dict[str, Array]:
        return compared_output(np.swapaxes(floats(output), 0, 1), problem)

    if row.task == "training":
        return Prepared(lambda: training(x), lambda found: results(found[0]))
    return Prepared(lambda: inference(x), results)
