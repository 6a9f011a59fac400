"""Gradients of the block cell's ops."""

from __future__ import annotations

from typing import Any

from tf_lstm_ops import _cells, op_definitions
from tf_lstm_ops.composite.block_cell import COMPOSITES
from tf_lstm_ops.gradients.common import Gradient, filled, second

# As the attribute gate_order of the ops has them.
_ICFO, _IFCO = _cells.BLOCK.upper(), _cells.BLOCK_V2.upper()


def _first(full_grad: str, gate_order: str) -> Gradient:
    def gradient(op: Any, *grads: Any) -> Any:
        found = op_definitions.function(full_grad)(
            *op.inputs,
            *op.outputs,
            *filled(grads, op.outputs),
            use_peephole=op.get_attr("use_peephole"),
            gate_order=gate_order,
        )
        return [None, *found] if full_grad == "BlockLSTMFullGrad" else found  # of seq_len_max

    return gradient


_CELL = _first("LSTMBlockCellFullGrad", _ICFO)
_SECOND: dict[str, Gradient] = {
    op: second(op, COMPOSITES[op])
    for op in ("LSTMBlockCellGrad", "BlockLSTMGrad", "BlockLSTMGradV2")
}

GRADIENTS: dict[str, Gradient] = {
    "TfLstmOps>LSTMBlockCell": _CELL,
    "TfLstmOps>BlockLSTM": _first("BlockLSTMFullGrad", _ICFO),
    "TfLstmOps>BlockLSTMV2": _first("BlockLSTMFullGrad", _IFCO),
    **{
        f"TfLstmOps>{op}": second(op, COMPOSITES[op])
        for op in ("LSTMBlockCellFullGrad", "BlockLSTMFullGrad")
    },
    **{f"TfLstmOps>{op}": gradient for op, gradient in _SECOND.items()},
    # Stock ops without a gradient in TensorFlow.
    "LSTMBlockCell": _CELL,
    **_SECOND,
}
