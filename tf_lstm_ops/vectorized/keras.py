"""The rows of the ops behind tf_lstm_ops.keras."""

from __future__ import annotations

from typing import Any

from tf_lstm_ops import op_definitions
from tf_lstm_ops.composite.keras_ops import BACKWARD, LAYERS
from tf_lstm_ops.gradients.common import attributes
from tf_lstm_ops.vectorized.common import Converter, Rows, converter

_RESULTS = ("output", "final_h", "final_c")
_STATES = ("initial_h", "initial_c")


def _both(axes: dict[str, int]) -> dict[str, int]:
    """The axes of two layers, one for each direction, from those of the first one."""
    return {**axes, **{f"{BACKWARD}{name}": axis for name, axis in axes.items()}}


_INPUTS = _both(
    {
        **dict.fromkeys(["x", "mask", *_STATES, *(f"{name}_grad" for name in _RESULTS)], 0),
        **{"input_dropout": 1, "recurrent_dropout": 1},
    }
)
_OUTPUTS = _both(dict.fromkeys([*_RESULTS, "x_grad", *(f"{name}_grad" for name in _STATES)], 0))


def _backward(name: str) -> Converter:
    """The gradient op reads the output and the activations, which the forward op computes again."""

    def saved(folded: dict[str, Any], op: Any) -> dict[str, Any]:
        own = [n for n in op_definitions.attributes(f"{name}Grad") if n != "needs_x_grad"]
        inputs = [folded[n] for n in op_definitions.inputs(name)]
        results = op_definitions.function(name)(*inputs, training=True, **attributes(op, own))
        return {"output": results[0], "reserve": results[-1]}

    return converter(lambda op: Rows(_INPUTS, _OUTPUTS, saved))


CONVERTERS: dict[str, Converter] = {
    f"TfLstmOps>{name}{suffix}": convert
    for name in LAYERS
    for suffix, convert in (
        ("", converter(lambda op: Rows(_INPUTS, _OUTPUTS))),
        ("Grad", _backward(name)),
    )
}
