"""Gradients of the ops behind tf_lstm_ops.keras."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tf_lstm_ops import _library, composite
from tf_lstm_ops.gradients.common import Gradient, attributes, filled, vector_jacobian

_ATTRIBUTES = ("go_backwards", "zero_output_for_mask", "return_sequences")


def _first(op_name: str, differentiated: Sequence[int], names: Sequence[str]) -> Gradient:
    """The gradient of a layer's op; `differentiated` are the inputs that have one."""

    def gradient(op: Any, *grads: Any) -> list[Any]:
        library = _library.load()
        settings = attributes(op, names)
        inputs, outputs = list(op.inputs), list(op.outputs)
        if not op.get_attr("training"):  # nothing was kept for this: take the step again
            outputs = list(getattr(library, op_name)(*inputs, training=True, **settings))
        upstream = filled(grads, op.outputs)[:-1]  # the reserve, last, has none
        found = getattr(library, f"{op_name}_grad")(
            *inputs, outputs[0], outputs[-1], *upstream, **settings
        )
        by_input: list[Any] = [None] * len(inputs)
        for position, value in zip(differentiated, found, strict=True):
            by_input[position] = value
        return by_input

    return gradient


def _second(function: Callable[..., Any], inputs: int, names: Sequence[str]) -> Gradient:
    """The gradient of a gradient op, whose first `inputs` inputs are those of the layer's op.

    Its output and reserve arguments are functions of the others, so the whole derivative goes
    through the forward composite and they have none of their own.
    """

    def gradient(op: Any, *grads: Any) -> list[Any]:
        settings = attributes(op, names)

        def composed(*values: Any) -> Any:
            return function(list(values[:inputs]), list(values[inputs:]), **settings)

        upstream = op.inputs[inputs + 2 :]
        found = vector_jacobian(composed, [*op.inputs[:inputs], *upstream], grads)
        return [*found[:inputs], None, None, *found[inputs:]]

    return gradient


_LSTM_ATTRIBUTES = (*_ATTRIBUTES, "cell_clip")

GRADIENTS: dict[str, Gradient] = {
    "TfLstmOps>KerasLSTM": _first(
        "tf_lstm_ops_keras_lstm", (0, 2, 3, 4, 5, 6, 7), _LSTM_ATTRIBUTES
    ),
    "TfLstmOps>KerasLSTMGrad": _second(composite.keras_lstm_grad, 10, _LSTM_ATTRIBUTES),
    "TfLstmOps>KerasGRU": _first("tf_lstm_ops_keras_gru", (0, 2, 3, 4, 5), _ATTRIBUTES),
    "TfLstmOps>KerasGRUGrad": _second(composite.keras_gru_grad, 8, _ATTRIBUTES),
}
