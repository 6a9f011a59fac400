"""What the peers that are TensorFlow share."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops.bench.cases import Problem
from tf_lstm_ops.weights import LSTMWeights
from tf_lstm_ops.weights.arrays import Array


def set_threads(threads: int) -> None:
    """TensorFlow takes it before its first op only; later it must be the same."""
    if tf.config.threading.get_intra_op_parallelism_threads() != threads:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)


def floats(tensor: Any) -> Array:
    return tf.convert_to_tensor(tensor).numpy().astype(np.float32)


def block_cells(problem: Problem, gate_order: str) -> list[dict[str, Any]]:
    """The weights of each cell as arguments of the block-cell ops, whose forget_bias is 0."""
    assert isinstance(problem.weights, LSTMWeights)
    cells = (LSTMWeights((cell,)) for cell in problem.weights.layers)
    forms = (cell.to_block_cell(gate_order=gate_order, forget_bias=0.0) for cell in cells)
    return [{name: tf.constant(a) for name, a in form._asdict().items()} for form in forms]
