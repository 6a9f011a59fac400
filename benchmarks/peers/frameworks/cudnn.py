"""This package's CudnnRNNV3."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

import tf_lstm_ops
from peers.cases import WEIGHTS, Problem, Row, compared_grads, compared_output
from peers.frameworks import Prepared
from peers.frameworks.tensorflow import floats, set_threads
from tf_lstm_ops._arrays import Array


def build(row: Row, problem: Problem, threads: int, *, use_lengths: bool = True) -> Prepared:
    """Makes a call of CudnnRNNV3.

    Args:
      row: the row.
      problem: its data.
      threads: the number of threads.
      use_lengths: whether to pass the sequence lengths; otherwise all T steps are computed, and the
        results are those of the valid ones.

    Returns:
      The call to time.
    """
    set_threads(threads)
    x, output_grad = (tf.constant(np.swapaxes(a, 0, 1)) for a in (problem.x, problem.output_grad))
    params = tf.constant(problem.weights.to_cudnn())
    states = [
        tf.zeros([len(problem.weights.cells), row.batch, size]) for size in (row.hidden, row.units)
    ]
    lengths = problem.lengths if use_lengths else np.full(row.batch, row.time, np.int32)

    def forward(x: Any, params: Any, is_training: bool) -> Any:
        return tf_lstm_ops.raw_ops.CudnnRNNV3(
            input=x,
            input_h=states[0],
            input_c=states[1],  # a GRU does not read it
            params=params,
            sequence_lengths=lengths,
            rnn_mode=row.cell,
            direction="bidirectional" if row.directions == 2 else "unidirectional",
            num_proj=row.projection,
            is_training=is_training,
        ).output

    @tf.function
    def inference(x: Any) -> Any:
        return forward(x, params, is_training=False)

    @tf.function
    def training(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch([x, params])
            output = forward(x, params, is_training=True)
        return output, *tape.gradient(output, [x, params], output_gradients=output_grad)

    if row.task == "training":
        training.get_concrete_function(x)
        return Prepared(lambda: training(x), lambda found: _training_results(row, problem, *found))
    return Prepared(lambda: inference(x), lambda output: _results(problem, output))


def _results(problem: Problem, output: Any) -> dict[str, Array]:
    return compared_output(np.swapaxes(floats(output), 0, 1), problem)


def _training_results(
    row: Row, problem: Problem, output: Any, x_grad: Any, params_grad: Any
) -> dict[str, Array]:
    weight_grads = WEIGHTS[row.cell].from_cudnn(
        floats(params_grad),
        input_size=row.inputs,
        units=row.units,
        num_layers=row.layers,
        directions=row.directions,
        projection_size=row.projection,
    )
    x_grad = np.swapaxes(floats(x_grad), 0, 1)
    return {**_results(problem, output), **compared_grads(x_grad, weight_grads)}
