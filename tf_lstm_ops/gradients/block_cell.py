"""Gradients of the block cell's ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_lstm_ops import _library, composite
from tf_lstm_ops.gradients.common import Gradient, filled, vector_jacobian


def _cell(op: Any, *grads: Any) -> Any:
    return _library.load().tf_lstm_ops_lstm_block_cell_full_grad(
        *op.inputs,
        *op.outputs,
        *filled(grads, op.outputs),
        use_peephole=op.get_attr("use_peephole"),
        gate_order="ICFO",
    )


def _sequence(order: str) -> Gradient:
    def gradient(op: Any, *grads: Any) -> Any:
        of_inputs = _library.load().tf_lstm_ops_block_lstm_full_grad(
            *op.inputs,
            *op.outputs,
            *filled(grads, op.outputs),
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
        return vector_jacobian(lambda *a: function(*a, **attributes), op.inputs, grads)

    return gradient


def _through_full_grad(function: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(op: Any, *grads: Any) -> Any:
        order = op.get_attr("gate_order")
        order = order.decode() if isinstance(order, bytes) else order
        return _through_composite(function, order)(op, *grads)

    return gradient


GRADIENTS: dict[str, Gradient] = {
    "TfLstmOps>LSTMBlockCell": _cell,
    "TfLstmOps>BlockLSTM": _sequence("ICFO"),
    "TfLstmOps>BlockLSTMV2": _sequence("IFCO"),
    "TfLstmOps>LSTMBlockCellGrad": _through_composite(composite.lstm_block_cell_grad),
    "TfLstmOps>BlockLSTMGrad": _through_composite(composite.block_lstm_grad, "ICFO"),
    "TfLstmOps>BlockLSTMGradV2": _through_composite(composite.block_lstm_grad, "IFCO"),
    "TfLstmOps>LSTMBlockCellFullGrad": _through_full_grad(composite.lstm_block_cell_full_grad),
    "TfLstmOps>BlockLSTMFullGrad": _through_full_grad(composite.block_lstm_full_grad),
    # Stock ops, where TensorFlow has no gradient of its own.
    "LSTMBlockCell": _cell,
    "LSTMBlockCellGrad": _through_composite(composite.lstm_block_cell_grad),
    "BlockLSTMGrad": _through_composite(composite.block_lstm_grad, "ICFO"),
    "BlockLSTMGradV2": _through_composite(composite.block_lstm_grad, "IFCO"),
}
