"""Gradients of the ops behind tf_lstm_ops.keras.

Which inputs have a gradient, and which attributes the gradient ops take, comes from their native
definitions: the gradient of an input ``x`` is the gradient op's output ``x_grad``.
"""

from __future__ import annotations

from typing import Any

from tf_lstm_ops import _tf_private, op_definitions
from tf_lstm_ops.composite.keras_ops import BACKWARD, COMPOSITES, LAYERS
from tf_lstm_ops.gradients.common import Gradient, attributes, filled, second

_NEEDS_X_GRAD = "needs_x_grad"  # the attribute of the gradient ops alone
_X = ("x", f"{BACKWARD}x")


def _first(name: str) -> Gradient:
    """The gradient of a layer's op."""

    own = [n for n in op_definitions.attributes(f"{name}Grad") if n != _NEEDS_X_GRAD]
    of_x = [k for k, input in enumerate(op_definitions.inputs(name)) if input in _X]

    def gradient(op: Any, *grads: Any) -> list[Any]:
        settings = attributes(op, own)
        inputs, outputs = list(op.inputs), list(op.outputs)
        if not op.get_attr("training"):  # activations were not saved: run the forward pass again
            outputs = list(op_definitions.function(name)(*inputs, training=True, **settings))
        output_grads = filled(grads[:-1], op.outputs[:-1])  # the reserve, last, has none
        found = op_definitions.function(f"{name}Grad")(
            *inputs,
            outputs[0],
            outputs[-1],
            *output_grads,
            **settings,
            needs_x_grad=any(_tf_private.needs_gradient(op, k) for k in of_x),
        )
        input_grads = found._asdict()
        return [input_grads.get(f"{input}_grad") for input in op_definitions.inputs(name)]

    return gradient


GRADIENTS: dict[str, Gradient] = {
    **{f"TfLstmOps>{op}": _first(op) for op in LAYERS},
    **{
        f"TfLstmOps>{op}Grad": second(f"{op}Grad", COMPOSITES[f"{op}Grad"], "output", "reserve")
        for op in LAYERS
    },
}
