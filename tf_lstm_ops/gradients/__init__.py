"""Gradients of the ops: of our own, and of stock ops that TensorFlow gives none.

First derivatives are fused ops; their derivatives, of any order, are those of `composite`.
"""

from __future__ import annotations

import tensorflow as tf

from tf_lstm_ops.gradients import block_cell, cudnn_rnn, keras, mpsgraph

_GRADIENTS = {
    **block_cell.GRADIENTS,
    **cudnn_rnn.GRADIENTS,
    **keras.GRADIENTS,
    **mpsgraph.GRADIENTS,
}


def register() -> None:
    """Registers the gradients; one that TensorFlow already has is left as it is."""
    for name, gradient in _GRADIENTS.items():
        try:
            tf.RegisterGradient(name)(gradient)
        except KeyError:  # registered already
            continue
    for name in cudnn_rnn.WITHOUT_GRADIENT:
        tf.no_gradient(name)
