"""The rows of the block cell's ops."""

from __future__ import annotations

from tf_lstm_ops.composite.block_cell import CellOutputs
from tf_lstm_ops.vectorized.common import Converter, Rows, converter

_OUTPUTS = CellOutputs._fields


def _convert(axis: int) -> Converter:
    """Of all ops; the axis is that of the tensors of every step."""
    steps = ["x", *_OUTPUTS, *(f"{name}_grad" for name in _OUTPUTS)]
    states = {"cs_prev": 0, "h_prev": 0}
    gradients = {"x_grad": axis, "dicfo": 0, **{f"{name}_grad": 0 for name in states}}
    outputs = {**dict.fromkeys(_OUTPUTS, axis), **gradients}
    rows = Rows({**dict.fromkeys(steps, axis), **states}, outputs)
    return converter(lambda op: rows)


_STEP = ("LSTMBlockCell", "LSTMBlockCellGrad")
_SEQUENCE = ("BlockLSTM", "BlockLSTMV2", "BlockLSTMGrad", "BlockLSTMGradV2")

# Also under the stock names, for which TensorFlow has no converters.
CONVERTERS: dict[str, Converter] = {
    **{f"{space}{op}": _convert(0) for space in ("", "TfLstmOps>") for op in _STEP},
    **{f"{space}{op}": _convert(1) for space in ("", "TfLstmOps>") for op in _SEQUENCE},
    "TfLstmOps>LSTMBlockCellFullGrad": _convert(0),
    "TfLstmOps>BlockLSTMFullGrad": _convert(1),
}
