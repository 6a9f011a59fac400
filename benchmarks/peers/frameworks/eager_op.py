"""The op behind this package's Keras layers, called eagerly."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from peers.cases import Problem, Row, compared_output
from peers.frameworks import Prepared
from peers.frameworks.tensorflow import floats, set_threads
from tf_lstm_ops import op_definitions


def build(row: Row, problem: Problem, threads: int) -> Prepared:
    """Makes an eager call of one op per layer direction, without a tf.function.

    All arguments but x are made before.

    Args:
      row: the row, of inference.
      problem: its data.
      threads: the number of threads.

    Returns:
      The call to time.
    """
    set_threads(threads)
    op = op_definitions.function({"lstm": "KerasLSTM", "gru": "KerasGRU"}[row.cell])
    directions = row.directions
    cells = [
        _arguments(row, problem, number, backwards=number % directions == 1)
        for number in range(row.layers * directions)
    ]
    x = tf.constant(problem.x, row.dtype)

    def call() -> Any:
        output = x
        for first in range(0, len(cells), directions):
            outputs = [op(x=output, **cell)[0] for cell in cells[first : first + directions]]
            # A backward op returns its steps in the order of their computation.
            output = (
                outputs[0]
                if directions == 1
                else tf.concat([outputs[0], tf.reverse(outputs[1], [1])], -1)
            )
        return output

    return Prepared(call, lambda output: compared_output(floats(output), problem))


def _arguments(row: Row, problem: Problem, number: int, backwards: bool) -> dict[str, Any]:
    """The arguments of the op of a layer direction, except x."""
    weights = type(problem.weights)((problem.weights.cells[number],)).to_keras()
    kernel, recurrent_kernel, bias, *rest = (tf.constant(array, row.dtype) for array in weights)
    absent = tf.zeros([0], row.dtype)
    h, c = (tf.zeros([row.batch, size], row.dtype) for size in (row.hidden, row.units))
    found = {
        "mask": tf.constant([] if problem.valid is None else problem.valid, tf.bool),
        "initial_h": h,
        "kernel": kernel,
        "recurrent_kernel": recurrent_kernel,
        "bias": bias,
        "input_dropout": absent,
        "recurrent_dropout": absent,
        "go_backwards": backwards,
        "return_sequences": True,
        "training": False,
    }
    if row.cell == "lstm":
        found |= {"initial_c": c, "peephole": absent, "projection": rest[0] if rest else absent}
    return found
