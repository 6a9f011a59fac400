"""This package's CudnnRNNV3."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops.bench.cases import WEIGHTS, Problem, Row, gradient_pieces, pieces
from tf_lstm_ops.bench.peers import Prepared
from tf_lstm_ops.bench.peers.tensorflow import floats, set_threads
from tf_lstm_ops.weights.arrays import Array


def build(row: Row, problem: Problem, threads: int, *, use_lengths: bool = True) -> Prepared:
    """Without `use_lengths` all T steps are computed; the results are those of the valid ones."""
    set_threads(threads)
    x, upstream = (tf.constant(np.swapaxes(a, 0, 1)) for a in (problem.x, problem.upstream))
    params = tf.constant(problem.weights.to_cudnn())
    state = tf.zeros([len(problem.weights.layers), row.batch, row.units])
    lengths = problem.lengths if use_lengths else np.full(row.batch, row.time, np.int32)

    def forward(x: Any, params: Any, is_training: bool) -> Any:
        return tf_lstm_ops.raw_ops.CudnnRNNV3(
            input=x,
            input_h=state,
            input_c=state,  # which a GRU does not read
            params=params,
            sequence_lengths=lengths,
            rnn_mode=row.cell,
            direction="bidirectional" if row.directions == 2 else "unidirectional",
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
        return output, *tape.gradient(output, [x, params], output_gradients=upstream)

    def output_pieces(output: Any) -> dict[str, Array]:
        return pieces(np.swapaxes(floats(output), 0, 1), problem)

    def gradients(found: Any) -> dict[str, Array]:
        output, of_x, of_params = found
        of_weights = WEIGHTS[row.cell].from_cudnn(
            floats(of_params),
            input_size=row.inputs,
            cell_size=row.units,
            layers=row.layers,
            directions=row.directions,
        )
        of_x = np.swapaxes(floats(of_x), 0, 1)
        return {**output_pieces(output), **gradient_pieces(of_x, of_weights)}

    if row.task == "training":
        training.get_concrete_function(x)
        return Prepared(lambda: training(x), gradients)
    return Prepared(lambda: inference(x), output_pieces)
