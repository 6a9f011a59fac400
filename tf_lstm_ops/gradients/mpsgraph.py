"""Gradients of MPSGraph's LSTM."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_lstm_ops import _library, composite
from tf_lstm_ops.gradients.common import Gradient, attributes, filled, vector_jacobian

_DESCRIPTOR = (
    *("reverse", "bidirectional", "forget_gate_last", "activation"),
    *(f"{gate}_gate_activation" for gate in ("input", "forget", "cell", "output")),
)
_REQUIRED = 2  # source, recurrent_weight
_SAVED = 3  # of the gradient op, after those: source_gradient, z_state, cell_output_fwd
_INPUTS = 8  # of the forward op
_MASK = 6


def _first(op: Any, *grads: Any) -> list[Any]:
    library, settings = _library.load(), attributes(op, _DESCRIPTOR)
    inputs, none = list(op.inputs), tf.zeros([0], op.inputs[0].dtype)
    output, cell, z_state = op.outputs
    of_output, of_cell, of_z_state = grads
    if not op.get_attr("training"):  # nothing was kept for this: run it again
        _, cell, z_state = library.tf_lstm_ops_mps_graph_lstm(*inputs, training=True, **settings)
        # TensorFlow has zeros for what was not asked for, of a shape that it does not know.
        of_cell = of_cell if op.get_attr("produce_cell") else None
        of_z_state = None
    found = library.tf_lstm_ops_mps_graph_lstm_gradients(
        *inputs[:_REQUIRED],
        *filled([of_output], [output]),
        z_state,
        cell,
        *inputs[_REQUIRED:],
        none,
        none,
        none if of_cell is None else of_cell,
        none if of_z_state is None else of_z_state,
        **settings,
    )
    source, recurrent_weight, input_weight, bias, peephole, init_state, init_cell = found
    states = init_state, init_cell
    return [source, recurrent_weight, input_weight, bias, *states, None, peephole]


def _second(op: Any, *grads: Any) -> list[Any]:
    """z_state and cell_output_fwd are functions of the other inputs: the whole derivative goes
    through the forward composite, and they have none."""
    settings = attributes(op, _DESCRIPTOR)
    required, rest = op.inputs[:_REQUIRED], op.inputs[_REQUIRED + _SAVED :]
    given = [*required, *rest[: _INPUTS - _REQUIRED]]
    upstream = [op.inputs[_REQUIRED], *rest[_INPUTS - _REQUIRED :]]

    def composed(*values: Any) -> Any:
        inputs, of_outputs = list(values[:_INPUTS]), list(values[_INPUTS:])
        return composite.mpsgraph_lstm_gradients(inputs, of_outputs, **settings)

    found = vector_jacobian(composed, [*given, *upstream], grads)
    found[_MASK] = None
    inputs, of_outputs = found[:_INPUTS], found[_INPUTS:]
    return [*inputs[:_REQUIRED], of_outputs[0], None, None, *inputs[_REQUIRED:], *of_outputs[1:]]


GRADIENTS: dict[str, Gradient] = {
    "TfLstmOps>MPSGraphLSTM": _first,
    "TfLstmOps>MPSGraphLSTMGradients": _second,
}
