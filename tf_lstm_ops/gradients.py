"""Gradients of the ops: of our own, and of stock ops that TensorFlow gives none.

First derivatives are fused ops; their derivatives, of any order, are those of `composite`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tf_lstm_ops import _library, composite

_KERAS_INPUTS = 10
_KERAS_ATTRIBUTES = ("cell_clip", "go_backwards", "zero_output_for_mask", "return_sequences")


def _filled(grads: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Upstream gradients with zeros where an output has none."""
    return [tf.zeros_like(y) if g is None else g for g, y in zip(grads, outputs, strict=True)]


def _vector_jacobian(
    function: Callable[..., Any], inputs: Sequence[Any], grads: Sequence[Any]
) -> list[Any]:
    """Gradients of plain TensorFlow `function` by all inputs; None by those that are no floats."""
    watched = [v for v in inputs if v.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = function(*inputs)
    found = iter(tape.gradient(outputs, watched, _filled(grads, outputs)))
    return [next(found) if v.dtype.is_floating else None for v in inputs]


def _cell(op: Any, *grads: Any) -> Any:
    return _library.load().tf_lstm_ops_lstm_block_cell_full_grad(
        *op.inputs,
        *op.outputs,
        *_filled(grads, op.outputs),
        use_peephole=op.get_attr("use_peephole"),
        gate_order="ICFO",
    )


def _sequence(order: str) -> Callable[..., Any]:
    def gradient(op: Any, *grads: Any) -> Any:
        of_inputs = _library.load().tf_lstm_ops_block_lstm_full_grad(
            *op.inputs,
            *op.outputs,
            *_filled(grads, op.outputs),
            use_peephole=op.get_attr("use_peephole"),
            gate_order=order,
        )
        return [None, *of_inputs]  # seq_len_max has none

    return gradient


def _through_composite(
    function: Callable[..., Any], order: str | None = None
) -> Callable[..., Any]:
    """The gradient of a gradient op, by the plain TensorFlow `function` that equals it."""

    def gradient(op: Any, *grads: Any) -> Any:
        attributes = {"use_peephole": op.get_attr("use_peephole")}
        if order:
            attributes["order"] = order
        return _vector_jacobian(lambda *a: function(*a, **attributes), op.inputs, grads)

    return gradient


def _through_full_grad(function: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(op: Any, *grads: Any) -> Any:
        order = op.get_attr("gate_order")
        order = order.decode() if isinstance(order, bytes) else order
        return _through_composite(function, order)(op, *grads)

    return gradient


def _keras(op: Any, *grads: Any) -> Any:
    library = _library.load()
    attributes = {name: op.get_attr(name) for name in _KERAS_ATTRIBUTES}
    inputs, outputs = list(op.inputs), list(op.outputs)
    if not op.get_attr("training"):  # nothing was kept for this: take the step again
        outputs = list(library.tf_lstm_ops_keras_lstm(*inputs, training=True, **attributes))
    output_grad, h_grad, c_grad, _ = _filled(grads, op.outputs)
    x, h, c, kernel, recurrent, bias, peephole = library.tf_lstm_ops_keras_lstm_grad(
        *inputs, outputs[0], outputs[3], output_grad, h_grad, c_grad, **attributes
    )
    return [x, None, h, c, kernel, recurrent, bias, peephole, None, None]


def _keras_second(op: Any, *grads: Any) -> Any:
    """The gradient of KerasLSTMGrad.

    Its output and reserve arguments are functions of the others, so the whole derivative goes
    through the forward composite and they have none of their own.
    """
    attributes = {name: op.get_attr(name) for name in _KERAS_ATTRIBUTES}
    inputs, upstream = list(op.inputs[:_KERAS_INPUTS]), list(op.inputs[_KERAS_INPUTS + 2 :])

    def function(*values: Any) -> Any:
        return composite.keras_lstm_grad(
            list(values[:_KERAS_INPUTS]), list(values[_KERAS_INPUTS:]), **attributes
        )

    found = _vector_jacobian(function, [*inputs, *upstream], grads)
    return [*found[:_KERAS_INPUTS], None, None, *found[_KERAS_INPUTS:]]


_GRADIENTS: dict[str, Callable[..., Any]] = {
    "TfLstmOps>LSTMBlockCell": _cell,
    "TfLstmOps>BlockLSTM": _sequence("ICFO"),
    "TfLstmOps>BlockLSTMV2": _sequence("IFCO"),
    "TfLstmOps>LSTMBlockCellGrad": _through_composite(composite.lstm_block_cell_grad),
    "TfLstmOps>BlockLSTMGrad": _through_composite(composite.block_lstm_grad, "ICFO"),
    "TfLstmOps>BlockLSTMGradV2": _through_composite(composite.block_lstm_grad, "IFCO"),
    "TfLstmOps>LSTMBlockCellFullGrad": _through_full_grad(composite.lstm_block_cell_full_grad),
    "TfLstmOps>BlockLSTMFullGrad": _through_full_grad(composite.block_lstm_full_grad),
    "TfLstmOps>KerasLSTM": _keras,
    "TfLstmOps>KerasLSTMGrad": _keras_second,
    # Stock ops, where TensorFlow has no gradient of its own.
    "LSTMBlockCell": _cell,
    "LSTMBlockCellGrad": _through_composite(composite.lstm_block_cell_grad),
    "BlockLSTMGrad": _through_composite(composite.block_lstm_grad, "ICFO"),
    "BlockLSTMGradV2": _through_composite(composite.block_lstm_grad, "IFCO"),
}


def register() -> None:
    """Registers the gradients; one that TensorFlow already has is left as it is."""
    for name, function in _GRADIENTS.items():
        try:
            tf.RegisterGradient(name)(function)
        except KeyError:  # registered already
            continue
