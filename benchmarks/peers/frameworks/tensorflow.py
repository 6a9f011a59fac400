"""Functions that the peers in TensorFlow use."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from peers.cases import Problem
from tf_lstm_ops._arrays import Array
from tf_lstm_ops.weights import LSTMWeights


def set_threads(threads: int) -> None:
    """Sets the threads of TensorFlow, which must be done before its first op.

    Args:
      threads: the number of threads; the same in every call.
    """
    if tf.config.threading.get_intra_op_parallelism_threads() != threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)


def floats(tensor: Any) -> Array:
    """Converts a tensor.

    Args:
      tensor: a tensor or variable.

    Returns:
      A float32 array.
    """
    return tf.convert_to_tensor(tensor).numpy().astype(np.float32)


def block_cells(problem: Problem, gate_order: str) -> list[dict[str, Any]]:
    """The weights as arguments of the block-cell ops with forget_bias=0.

    Args:
      problem: the data of a row of LSTMs.
      gate_order: "ICFO" or "IFCO".

    Returns:
      For each layer direction the tensors by name.
    """
    assert isinstance(problem.weights, LSTMWeights)
    cells = (LSTMWeights((cell,)) for cell in problem.weights.cells)
    arguments = (cell.to_block_cell(gate_order=gate_order, forget_bias=0.0) for cell in cells)
    return [{name: tf.constant(a) for name, a in each._asdict().items()} for each in arguments]
