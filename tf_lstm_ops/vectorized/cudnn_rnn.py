"""The rows of the CudnnRNN ops.

In inference all rows of all iterations are one call. In training reserve_space has the activations
and the dropout mask of one call, so there is a call for each iteration.
"""

from __future__ import annotations

from typing import Any

from tf_lstm_ops.vectorized.common import Converter, Rows, converter


def _forward(op: Any) -> Rows | None:
    if op.get_attr("is_training"):
        return None
    batch = 0
    if not op.type.endswith("V3") or op.get_attr("time_major"):
        batch = 1
    inputs = {"input": batch, "input_h": batch, "sequence_lengths": 0}
    outputs = {"output": batch, "output_h": batch}
    if op.get_attr("rnn_mode") == b"lstm":
        inputs["input_c"], outputs["output_c"] = batch, batch
    return Rows(inputs, outputs)


_FORWARD = ("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3")
_OTHERS = (
    *("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3", "CudnnRNNParamsSize"),
    *("CudnnRNNParamsToCanonical", "CudnnRNNParamsToCanonicalV2"),
    *("CudnnRNNCanonicalToParams", "CudnnRNNCanonicalToParamsV2"),
)

_LOOP = converter(lambda op: None)

# Also under the stock names, for which TensorFlow has no converters.
CONVERTERS: dict[str, Converter] = {
    **{f"{space}{op}": converter(_forward) for space in ("", "TfLstmOps>") for op in _FORWARD},
    **{f"{space}{op}": _LOOP for space in ("", "TfLstmOps>") for op in _OTHERS},
    "TfLstmOps>CudnnRNNDropoutMask": _LOOP,
}
