"""Gradients of MPSGraph's LSTM."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_lstm_ops import _placement, op_definitions
from tf_lstm_ops.composite.mpsgraph import COMPOSITES
from tf_lstm_ops.gradients.common import Gradient, attributes, filled, second

_FORWARD, _BACKWARD = "MPSGraphLSTM", "MPSGraphLSTMGradients"
_REQUIRED = 2  # source, recurrent_weight: the first inputs of both ops


def _first(
    op: tf.Operation, output_grad: Any, cell_grad: tf.Tensor, z_state_grad: tf.Tensor
) -> list[tf.Tensor]:
    saved = op.get_attr("training")
    if not saved:
        # For outputs that were not requested TensorFlow passes zeros of an unknown shape.
        cell_grad = cell_grad if op.get_attr("produce_cell") else None
        z_state_grad = None
    grads = output_grad, cell_grad, z_state_grad
    if _placement.on_metal() and (cell_grad is not None or z_state_grad is not None):
        # The Metal kernel takes no such gradients, and its z_state has MPSGraph's own content. The
        # CPU computes both passes.
        with tf.device("CPU:0"):
            return _by_ops(op, False, *grads)
    return _by_ops(op, saved, *grads)


def _by_ops(
    op: tf.Operation, saved: bool, output_grad: Any, cell_grad: tf.Tensor, z_state_grad: tf.Tensor
) -> list[tf.Tensor]:
    """The gradients of the inputs. Unless `saved`, the forward pass runs again."""
    settings = attributes(op, op_definitions.attributes(_BACKWARD))
    inputs, none = list(op.inputs), tf.zeros([0], op.inputs[0].dtype)
    output, cell, z_state = op.outputs
    if not saved:
        forward = op_definitions.function(_FORWARD)
        _, cell, z_state = forward(*inputs, training=True, **settings)
    found = op_definitions.function(_BACKWARD)(
        *inputs[:_REQUIRED],
        *filled([output_grad], [output]),
        z_state,
        cell,
        *inputs[_REQUIRED:],
        none,
        none,
        none if cell_grad is None else cell_grad,
        none if z_state_grad is None else z_state_grad,
        **settings,
    )
    input_grads = found._asdict()  # all but the mask's
    return [input_grads.get(f"{name}_grad") for name in op_definitions.inputs(_FORWARD)]


GRADIENTS: dict[str, Gradient] = {
    f"TfLstmOps>{_FORWARD}": _first,
    f"TfLstmOps>{_BACKWARD}": second(
        _BACKWARD, COMPOSITES[_BACKWARD], "z_state", "cell_output_fwd", "mask"
    ),
}
