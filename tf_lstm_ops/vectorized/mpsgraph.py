"""The rows of MPSGraph's LSTM."""

from __future__ import annotations

from typing import Any

from tf_lstm_ops import op_definitions
from tf_lstm_ops.gradients.common import attributes
from tf_lstm_ops.vectorized.common import Converter, Rows, converter

_FORWARD, _BACKWARD = "MPSGraphLSTM", "MPSGraphLSTMGradients"
_AXES = {"source": 1, "init_state": 0, "init_cell": 0}
_OUTPUTS = {"output": 1, "cell": 1, "z_state": 1}
_OUTPUT_GRADS = {
    **dict.fromkeys(["source_gradient", "cell_output_gradient", "z_state_gradient"], 1),
    **dict.fromkeys(["state_gradient", "cell_gradient"], 0),
}


def _inputs(op: Any) -> dict[str, int] | None:
    """The axes of the inputs; None if the mask or a gradient has rows at another axis."""
    given = dict(zip((a.name for a in op.op_def.input_arg), op.inputs, strict=True))
    if any(value.shape.rank is None for value in given.values()):
        return None
    axes = {**_AXES, **_OUTPUT_GRADS}
    for name in ("state_gradient", "cell_gradient"):
        if name in given and given[name].shape.rank == 3:
            axes[name] = 1
    mask = given["mask"].shape
    if mask.rank == 2 and mask[0] != 1:
        # Rows, unless the size is 1 at run time.
        return {**axes, "mask": 0} if mask[0] is not None else None
    return axes


def _forward(op: Any) -> Rows | None:
    axes = _inputs(op)
    return None if axes is None else Rows(axes, _OUTPUTS)


def _backward(op: Any) -> Rows | None:
    axes = _inputs(op)
    outputs = {f"{name}_grad": axis for name, axis in _AXES.items()}
    return None if axes is None else Rows(axes, outputs, _saved)


def _saved(folded: dict[str, Any], op: Any) -> dict[str, Any]:
    inputs = [folded[name] for name in op_definitions.inputs(_FORWARD)]
    settings = attributes(op, op_definitions.attributes(_BACKWARD))
    results = op_definitions.function(_FORWARD)(
        *inputs, produce_cell=True, training=True, **settings
    )
    return {"z_state": results.z_state, "cell_output_fwd": results.cell}


CONVERTERS: dict[str, Converter] = {
    f"TfLstmOps>{_FORWARD}": converter(_forward),
    f"TfLstmOps>{_BACKWARD}": converter(_backward),
}
