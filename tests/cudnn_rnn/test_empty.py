"""A batch of no rows, and sequences without steps."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from empties import SIZES, assert_ones, assert_zero, derivatives, leave_nan

from .cases import DTYPES, FORWARD, SOURCES, Case, arguments, call

MODELS = {
    "lstm": Case(layers=2, directions=2),
    "gru": Case(mode="gru", layers=2),
    "tanh": Case(mode="rnn_tanh", directions=2, batch=1),
    "projected": Case(proj=2, layers=2, time_major=False),
}
CASES = [
    (op, model, sizes)
    for op, model, sizes in itertools.product(FORWARD, MODELS, SIZES)
    if op == "CudnnRNNV3" or model != "projected"
]


def split(op: str, case: Case, dtype: str = "float32") -> tuple[list[tf.Tensor], dict]:
    """The arguments of floating point, and sequence_lengths where the op has it."""
    values = arguments(op, case, dtype)
    lengths = {k: values.pop(k) for k in ("sequence_lengths",) if k in values}
    return list(values.values()), lengths


@pytest.mark.sampled(12)
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("op", "model", "sizes"), CASES, ids=str)
def test_results_and_derivatives(op, model, sizes, source, dropout):
    check(op, model, sizes, source, dropout, "eager")


@pytest.mark.parametrize(
    ("op", "model", "sizes", "source", "dropout", "mode"),
    [
        ("CudnnRNNV3", "tanh", {"time": 0}, "own", 0.0, "unknown sizes"),
        *(
            pytest.param(*case, marks=pytest.mark.full)
            for case in (
                ("CudnnRNNV2", "tanh", {"time": 0}, "stock", 0.5, "unknown sizes"),
                ("CudnnRNN", "gru", {"batch": 0}, "own", 0.0, "known sizes"),
            )
        ),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                ("CudnnRNNV3", "projected", {"batch": 0, "time": 0}, "own", 0.0, "known sizes"),
                ("CudnnRNNV3", "lstm", {"time": 0}, "stock", 0.5, "known sizes"),
                ("CudnnRNNV3", "lstm", {"batch": 0}, "own", 0.5, "unknown sizes"),
                ("CudnnRNNV2", "gru", {"batch": 0, "time": 0}, "stock", 0.0, "unknown sizes"),
            )
        ),
    ],
    ids=str,
)
def test_in_a_function(op, model, sizes, source, dropout, mode):
    check(op, model, sizes, source, dropout, mode)


def check(op, model, sizes, source, dropout, mode):
    """The states pass unchanged, and so do their gradients; all else is empty or zero."""
    case = replace(MODELS[model], **sizes)
    inputs, lengths = split(op, case)

    def function(*values):
        names = ("input", "input_h", "input_c", "params")
        named = dict(zip(names, values, strict=True)) | lengths
        return call(op, case, named, source, dropout=dropout)[:3]

    found = derivatives(function, inputs, mode)
    assert_zero(found.results[0], case.result_shapes(op)[0])
    is_lstm = case.mode == "lstm"
    for k, (result, state) in enumerate(zip(found.results[1:], inputs[1:3], strict=True)):
        if k == 0 or is_lstm:
            np.testing.assert_array_equal(result, state)
            assert_ones(found.first[1 + k], state.shape)
        else:
            assert_zero(found.first[1 + k], ())
    for k in (0, 3):
        assert_zero(found.first[k], inputs[k].shape)
    for second, like in zip(found.second, inputs, strict=True):
        assert_zero(second, like.shape)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("op", FORWARD)
def test_backprop_ops(op, sizes, dtype):
    """The gradient ops, with another upstream gradient for each element of a state."""
    case = replace(MODELS["lstm"], **sizes)
    backprop = op.replace("RNN", "RNNBackprop")
    values = arguments(backprop, case, dtype)
    leave_nan([values["params"]])
    got = call(backprop, case, values)
    assert_zero(got.input_backprop.numpy(), values["input"].shape)
    np.testing.assert_array_equal(got.input_h_backprop, values["output_h_backprop"])
    np.testing.assert_array_equal(got.input_c_backprop, values["output_c_backprop"])
    assert_zero(got.params_backprop.numpy(), values["params"].shape)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_inference(sizes):
    case = replace(MODELS["lstm"], **sizes)
    inputs, _ = split("CudnnRNN", case)
    names = ("input", "input_h", "input_c", "params")
    got = call("CudnnRNN", case, dict(zip(names, inputs, strict=True)), is_training=False)
    assert_zero(got.output.numpy(), case.result_shapes("CudnnRNN")[0])
    np.testing.assert_array_equal(got.output_h, inputs[1])
    np.testing.assert_array_equal(got.output_c, inputs[2])
    assert_zero(got.reserve_space.numpy(), ())
