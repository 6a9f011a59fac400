"""Gradients of MPSGraph's LSTM."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_lstm_ops import _placement, op_definitions
from tf_lstm_ops.composite import mpsgraph as composite
from tf_lstm_ops.gradients.common import Gradient, attributes, filled, vector_jacobian

_FORWARD, _BACKWARD = "MPSGraphLSTM", "MPSGraphLSTMGradients"
_REQUIRED = 2  # source, recurrent_weight: the first inputs of both ops
_SAVED = 3  # next in the gradient op: source_gradient, z_state, cell_output_fwd
_INPUTS = 8  # of the forward op
_MASK = 6


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


def _second(op: tf.Operation, *grads: tf.Tensor) -> list[tf.Tensor]:
    """The gradient of the gradient op.

    Its inputs z_state and cell_output_fwd are functions of the other inputs. The whole derivative
    goes through the composite of the forward pass, so these two have none of their own.
    """
    settings = attributes(op, op_definitions.attributes(_BACKWARD))
    required, rest = op.inputs[:_REQUIRED], op.inputs[_REQUIRED + _SAVED :]
    forward_inputs = [*required, *rest[: _INPUTS - _REQUIRED]]
    output_grads = [op.inputs[_REQUIRED], *rest[_INPUTS - _REQUIRED :]]

    def composed(*values: Any) -> Any:
        inputs, output_grads = list(values[:_INPUTS]), list(values[_INPUTS:])
        return composite.mpsgraph_lstm_gradients(inputs, output_grads, **settings)

    found = vector_jacobian(composed, [*forward_inputs, *output_grads], grads)
    found[_MASK] = None
    first, second = found[:_INPUTS], found[_INPUTS:]
    return [*first[:_REQUIRED], second[0], None, None, *first[_REQUIRED:], *second[1:]]


GRADIENTS: dict[str, Gradient] = {
    f"TfLstmOps>{_FORWARD}": _first,
    f"TfLstmOps>{_BACKWARD}": _second,
}
