"""Calls that a type checker must refuse. `.ci/run` checks this file with mypy and pyright, which
report an ignored error that is none. No test runs it.
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


def wrong_results(x: Any) -> None:
    step = raw_ops.LSTMBlockCell(x=x, cs_prev=x, h_prev=x, w=x, wci=x, wcf=x, wco=x, b=x)
    print(step.nonsense)  # type: ignore[attr-defined]
    print(step[7])  # type: ignore[misc]
    _h, _cs = step  # type: ignore[misc]
    model = raw_ops.CudnnRNN(input=x, input_h=x, input_c=x, params=x)
    print(model.host_reserved)  # type: ignore[attr-defined]
    sizes = {"num_layers": x, "num_units": x, "input_size": x}
    canonical = raw_ops.CudnnRNNParamsToCanonical(**sizes, params=x, num_params=8)
    print(canonical.weights.shape)  # type: ignore[attr-defined]
    raw_ops.CudnnRNNCanonicalToParams(**sizes, weights=1, biases=[x])  # type: ignore[arg-type]
    print(raw_ops.MPSGraphLSTM(source=x, recurrent_weight=x).h)  # type: ignore[attr-defined]


def right_calls(x: Any) -> None:
    arguments = {name: x for name in ("x", "cs_prev", "h_prev", "w", "wci", "wcf", "wco", "b")}
    step = raw_ops.LSTMBlockCell(**arguments, forget_bias=0.5)
    _i, _cs, _f, _o, _ci, _co, h = step
    print(step.h.shape, step[6] + 1, h.dtype)
    model = raw_ops.CudnnRNNV3(input=x, input_h=x, input_c=x, params=x, sequence_lengths=x)
    print(model.host_reserved, raw_ops.MPSGraphLSTM(source=x, recurrent_weight=x).output)
