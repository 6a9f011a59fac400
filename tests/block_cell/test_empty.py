"""A batch of no rows, and sequences without steps."""

import itertools

import pytest
import tensorflow as tf

from empties import SIZES, assert_zero, derivatives, leave_nan
from oracle.block_cell import Inputs, Outputs

from .grid import (
    CELL,
    OPS,
    SEQUENCE,
    SEQUENCE_V2,
    Op,
    Sizes,
    call,
    call_grad,
    random_inputs,
    tensors,
)

OPTIONS = {"use_peephole": True, "cell_clip": 0.5}
CASES = [
    (name, sizes)
    for name, sizes in itertools.product(OPS, SIZES)
    if OPS[name].is_sequence or "time" not in sizes
]


def empty_inputs(rng, op: Op, sizes: dict[str, int], dtype: str = "float32") -> Inputs:
    full = Sizes(time=2, batch=3, inputs=4, units=5)
    return tensors(random_inputs(rng, op, full._replace(**sizes)), dtype)


def output_shape(op: Op, inputs: Inputs) -> tuple[int, ...]:
    return (*(inputs.x.shape[:1] if op.is_sequence else ()), *inputs.cs_prev.shape)


@pytest.mark.parametrize(("name", "sizes"), CASES, ids=str)
def test_results_and_derivatives(rng, name, sizes):
    check(rng, name, sizes, "eager")


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "sizes", "mode"),
    [
        (SEQUENCE_V2.name, {"batch": 0}, "unknown sizes"),
        pytest.param(CELL.name, {"batch": 0}, "known sizes", marks=pytest.mark.slow),
        pytest.param(CELL.name, {"batch": 0}, "unknown sizes", marks=pytest.mark.full),
        pytest.param(SEQUENCE.name, {"time": 0}, "known sizes", marks=pytest.mark.full),
        pytest.param(SEQUENCE.name, {"time": 0}, "unknown sizes", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_in_a_function(rng, name, sizes, mode):
    check(rng, name, sizes, mode)


def check(rng, name, sizes, mode):
    """No output depends on an input, so all derivatives are zeros."""
    op = OPS[name]
    inputs = empty_inputs(rng, op, sizes)
    found = derivatives(lambda *values: call(op, Inputs(*values), **OPTIONS), inputs, mode)
    for result in found.results:
        assert_zero(result, output_shape(op, inputs))
    for gradients in (found.first, found.second):
        for got, like in zip(gradients, inputs, strict=True):
            assert_zero(got, like.shape)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize(("name", "sizes"), CASES, ids=str)
def test_gradient_ops(rng, name, sizes, use_peephole, dtype):
    op = OPS[name]
    inputs = empty_inputs(rng, op, sizes, dtype)
    saved = tf.zeros(output_shape(op, inputs), inputs.x.dtype)
    leave_nan(inputs)
    got = call_grad(
        op, inputs, Outputs(*[saved] * 7), saved, saved, use_peephole=use_peephole
    )._asdict()
    shapes = {f"{field}_grad": value.shape for field, value in inputs._asdict().items()}
    shapes["dicfo"] = (inputs.cs_prev.shape[0], 20)
    for output, value in got.items():
        assert_zero(value.numpy(), shapes[output])
