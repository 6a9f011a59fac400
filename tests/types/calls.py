"""Calls that a type checker must refuse. `.ci/run` checks this file with mypy, which reports an
ignored error that is none. No test runs it.
"""

from typing import Any

from tf_lstm_ops import raw_ops


def wrong_calls(x: Any) -> None:
    raw_ops.LSTMBlockCell(nonsense=3)  # type: ignore[call-arg]
    raw_ops.LSTMBlockCellGrad(x=x)  # type: ignore[call-arg]
    raw_ops.BlockLSTM(x, x)  # type: ignore[call-arg]
    raw_ops.CudnnRNNV3(input=x, input_h=x, input_c=x, params=x)  # type: ignore[call-arg]
    raw_ops.LSTMBlockCell(
        x=x,
        cs_prev=x,
        h_prev=x,
        w=x,
        wci=x,
        wcf=x,
        wco=x,
        b=x,
        forget_bias="1",  # type: ignore[arg-type]
    )
    raw_ops.MPSGraphLSTM(source=x, recurrent_weight=x, hidden=x)  # type: ignore[call-arg]


def right_call(x: Any) -> None:
    arguments = {name: x for name in ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")}
    raw_ops.LSTMBlockCell(**arguments, forget_bias=0.5)
