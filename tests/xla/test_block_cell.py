"""The block cell's ops where XLA compiles: beside their own kernels, outside."""

import itertools

import pytest
import tensorflow as tf

from block_cell.grid import (
    CELL,
    DTYPES,
    OPS,
    OPTIONS,
    SEQUENCE,
    SEQUENCE_V2,
    Sizes,
    call,
    call_grad,
    random_inputs,
    tensors,
)
from oracle.block_cell import Inputs, Outputs

from .comparison import (
    SECOND_ORDER,
    assert_agree,
    compiled,
    second_derivatives,
    value_and_grads,
)

SIZES = Sizes(4, 3, 2, 5)
STEPS = tf.constant(3, tf.int64)

# By default one case for each order of gates, with all options, and one of a 16-bit type.
MARKS = {
    (CELL.name, "peephole_clip", "float64"): [],
    (CELL.name, "defaults", "half"): [],
    (SEQUENCE.name, "peephole_clip", "float64"): pytest.mark.full,
    (SEQUENCE_V2.name, "peephole_clip", "float64"): [],
}
CASES = [
    pytest.param(*case, marks=MARKS.get(case, pytest.mark.slow))
    for case in itertools.product(OPS, OPTIONS, DTYPES)
]


@pytest.mark.parametrize(("name", "options", "dtype"), CASES)
def test_values_and_gradients(rng, name, options, dtype):
    """Of all seven outputs, by all eight inputs; the number of steps is known when it runs only."""
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES, dtype), dtype)

    def function(steps, *inputs):
        def of_inputs(*inputs):
            return call(op, Inputs(*inputs), steps, **op.select(OPTIONS[options]))

        return value_and_grads(of_inputs, *inputs)

    assert_agree(compiled(function, STEPS, *inputs), function(STEPS, *inputs), dtype)


@pytest.mark.parametrize(
    "name",
    [
        CELL.name,
        pytest.param(SEQUENCE.name, marks=pytest.mark.slow),
        pytest.param(SEQUENCE_V2.name, marks=pytest.mark.full),
    ],
)
def test_gradient_ops(rng, name):
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES), "float64")
    saved = call(op, inputs, STEPS)

    def function(steps, *a):
        return call_grad(op, Inputs(*a[:8]), Outputs(*a[8:15]), *a[15:], steps, use_peephole=True)

    arguments = [STEPS, *inputs, *saved, saved.cs, saved.h]
    assert_agree(compiled(function, *arguments), function(*arguments))


@pytest.mark.full
@pytest.mark.parametrize("name", [CELL.name, pytest.param(SEQUENCE.name, marks=pytest.mark.slow)])
def test_second_derivatives(rng, name):
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES), "float64")

    def function(*inputs):
        def h(*inputs):
            return call(op, Inputs(*inputs), use_peephole=True).h

        return second_derivatives(h, *inputs)

    assert_agree(compiled(function, *inputs), function(*inputs), factor=SECOND_ORDER)


def test_one_step_after_another(rng):
    """A loop of the user's around the cell, with sizes that are not known while it is traced."""
    inputs = tensors(random_inputs(rng, SEQUENCE, SIZES), "float64")
    signature = [tf.TensorSpec([None] * a.shape.rank, a.dtype) for a in inputs]

    def function(*inputs):
        given = Inputs(*inputs)
        cs, h = given.cs_prev, given.h_prev
        for t in tf.range(tf.shape(given.x)[0]):
            step = call(CELL, given._replace(x=given.x[t], cs_prev=cs, h_prev=h))
            cs, h = step.cs, step.h
        return cs, h

    traced = tf.function(function, input_signature=signature, jit_compile=True)
    sequence = call(SEQUENCE, inputs)
    assert_agree(traced(*inputs), (sequence.cs[-1], sequence.h[-1]))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"wci": tf.zeros([3])}, r"wci.dim_size\(0\) != cell_size: 3 vs. 5"),
        ({"x": tf.zeros([3])}, "x must be rank 2 but is rank 1"),
        ({"cs_prev": tf.zeros([1, 5])}, r"cs_prev.dim_size\(0\) != batch_size: 1 vs. 3"),
    ],
)
def test_a_wrong_shape(rng, wrong, message):
    """The op's own words, as while any function is traced."""
    inputs = tensors(random_inputs(rng, CELL, SIZES, "float32"), "float32")
    with pytest.raises(ValueError, match=message):
        compiled(lambda *a: call(CELL, Inputs(*a)), *inputs._replace(**wrong))


def test_a_wrong_type(rng):
    inputs = tensors(random_inputs(rng, CELL, SIZES, "float32"), "float32")
    wrong = inputs._replace(b=tf.cast(inputs.b, tf.float64))
    with pytest.raises(tf.errors.InvalidArgumentError, match="b must be float32 but is float64"):
        compiled(lambda *a: call(CELL, Inputs(*a)), *wrong)
