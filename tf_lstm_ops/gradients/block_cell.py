"""Gradients of the block cell's ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tf_lstm_ops import _cells, op_definitions
from tf_lstm_ops.composite import block_cell as composite
from tf_lstm_ops.gradients.common import Gradient, attributes, filled, vector_jacobian

# As the attribute gate_order of the ops has them.
_ICFO, _IFCO = _cells.BLOCK.upper(), _cells.BLOCK_V2.upper()


def _cell(op: Any, *grads: Any) -> Any:
    return op_definitions.function("LSTMBlockCellFullGrad")(
        *op.inputs,
        *op.outputs,
        *filled(grads, op.outputs),
        use_peephole=op.get_attr("use_peephole"),
        gate_order=_ICFO,
    )


def _sequence(gate_order: str) -> Gradient:
    def gradient(op: Any, *grads: Any) -> Any:
        input_grads = op_definitions.function("BlockLSTMFullGrad")(
            *op.inputs,
            *op.outputs,
            *filled(grads, op.outputs),
            use_peephole=op.get_attr("use_peephole"),
            gate_order=gate_order,
        )
        return [None, *input_grads]  # seq_len_max has none

    return gradient


def _second(function: Callable[..., Any], gate_order: str | None = None) -> Gradient:
    """The gradient of a gradient op: the gradient of its composite.

    The FullGrad ops have the gate order as an attribute; the order of the other ops is fixed.
    """

    def gradient(op: Any, *grads: Any) -> Any:
        names = ("use_peephole",) if gate_order else ("use_peephole", "gate_order")
        settings = attributes(op, names)
        if gate_order:
            settings["gate_order"] = gate_order
        return vector_jacobian(lambda *a: function(*a, **settings), op.inputs, grads)

    return gradient


_SECOND: dict[str, Gradient] = {
    "LSTMBlockCellGrad": _second(composite.lstm_block_cell_grad, _ICFO),
    "BlockLSTMGrad": _second(composite.block_lstm_grad, _ICFO),
    "BlockLSTMGradV2": _second(composite.block_lstm_grad, _IFCO),
}

GRADIENTS: dict[str, Gradient] = {
    "TfLstmOps>LSTMBlockCell": _cell,
    "TfLstmOps>BlockLSTM": _sequence(_ICFO),
    "TfLstmOps>BlockLSTMV2": _sequence(_IFCO),
    "TfLstmOps>LSTMBlockCellFullGrad": _second(composite.lstm_block_cell_full_grad),
    "TfLstmOps>BlockLSTMFullGrad": _second(composite.block_lstm_full_grad),
    **{f"TfLstmOps>{op}": gradient for op, gradient in _SECOND.items()},
    # Stock ops without a gradient in TensorFlow.
    "LSTMBlockCell": _cell,
    **_SECOND,
}
