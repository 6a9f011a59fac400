"""Derivatives of derivatives, in float64, of every op.

Two independent witnesses: the complex step through the oracle's backward pass (element by element,
exact to rounding), and finite differences of the package's own first derivatives.
"""

from collections import namedtuple

import numpy as np
import pytest
import tensorflow as tf

from oracle.block_cell import Inputs, Outputs, cell_backward, zero_upstream
from oracle.derivatives import central_difference, complex_step, unit_direction
from sums import gradient, tf_weighted_sum, weighted_sum

from .grid import (
    CELL,
    CLIP,
    OPS,
    SEQUENCE,
    SEQUENCE_V2,
    SMALL_SIZES,
    Sizes,
    call,
    call_grad,
    random_inputs,
    random_like,
    reference,
    reference_backward,
    tensors,
)

# Complex step and tape both only round: some hundred roundings, through sums of size ten.
ROUNDING = 1e-11
# Fourth-order differences (see central_difference) of sums of size ten.
DIFFERENCE = 1e-9

OPTIONS = {
    "plain": {"cell_clip": 0.0},
    "peephole": {"cell_clip": 0.0, "use_peephole": True},
    "peephole_clip": {"cell_clip": CLIP, "use_peephole": True},
}


def assert_all_close(got, want, tolerance):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"argument {k}")


def first_order(op, arguments, weights, **options):
    """Σ weights∘gradients of the forward op, as a function of its inputs and upstreams."""
    inputs, upstream = Inputs(*arguments[:8]), list(arguments[8:])
    with tf.GradientTape() as tape:
        tape.watch(list(inputs))
        outputs = call(op, inputs, **options)
    gradients = tape.gradient(list(outputs), list(inputs), upstream)
    return tf_weighted_sum(weights, gradients)


@pytest.mark.sampled
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("sizes", SMALL_SIZES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_second_derivatives_of_forward_ops(rng, name, sizes, options):
    """By all eight inputs and all seven upstream gradients."""
    op, chosen = OPS[name], OPTIONS[options]
    inputs = random_inputs(rng, op, sizes)
    upstream = random_like(rng, reference(op, inputs))
    weights = random_like(rng, inputs)
    point = [tf.constant(a) for a in (*inputs, *upstream)]
    got = gradient(lambda a: first_order(op, a, weights, **chosen), point)

    def oracle(arguments):
        values = Inputs(*arguments[:8])
        gradients = reference_backward(
            op,
            values,
            reference(op, values, **chosen),
            Outputs(*arguments[8:]),
            use_peephole=chosen.get("use_peephole", False),
        )
        return weighted_sum(weights, gradients)

    assert_all_close(got, complex_step(oracle, [*inputs, *upstream]), ROUNDING)


@pytest.mark.sampled
@pytest.mark.parametrize("sizes", SMALL_SIZES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_second_derivatives_are_finite_differences_of_the_first(rng, name, sizes):
    op = OPS[name]
    inputs = random_inputs(rng, op, sizes)
    point = [*inputs, *random_like(rng, reference(op, inputs))]
    weights = random_like(rng, inputs)

    def function(arguments):
        constants = [tf.constant(a) for a in arguments]
        return first_order(op, constants, weights, use_peephole=True, cell_clip=0.0)

    got = gradient(function, [tf.constant(a) for a in point])
    for _ in range(3):
        direction = unit_direction(rng, point)
        want = central_difference(lambda a: function(a).numpy(), point, direction)
        np.testing.assert_allclose(weighted_sum(direction, got), want, rtol=0, atol=DIFFERENCE)


# --- the gradient ops, as functions of every one of their inputs -----------------------------

Arguments = namedtuple(
    "Arguments",
    [*Inputs._fields, *(f"saved_{field}" for field in Outputs._fields), "cs_grad", "h_grad"],
)


def random_arguments(rng, op, sizes, **options):
    inputs = random_inputs(rng, op, sizes)
    saved = reference(op, inputs, **options)
    upstream = random_like(rng, saved)
    return Arguments(*inputs, *saved, upstream.cs, upstream.h)


def package_grads(op, arguments, use_peephole, length=None):
    a = Arguments(*arguments)
    return call_grad(
        op,
        Inputs(*a[:8]),
        Outputs(*a[8:15]),
        a.cs_grad,
        a.h_grad,
        length,
        use_peephole=use_peephole,
    )


def oracle_grads(op, arguments, use_peephole, length=None):
    a = Arguments(*arguments)
    inputs, saved = Inputs(*a[:8]), Outputs(*a[8:15])
    upstream = zero_upstream(saved, cs=a.cs_grad, h=a.h_grad)
    if op.is_sequence:
        return reference_backward(op, inputs, saved, upstream, length, use_peephole=use_peephole)
    d, gates = cell_backward(inputs, saved, upstream, use_peephole=use_peephole)
    return d.cs_prev, gates, d.wci, d.wcf, d.wco


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize("sizes", SMALL_SIZES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_derivatives_of_gradient_ops(rng, name, sizes, use_peephole):
    """LSTMBlockCellGrad by its 16 inputs, BlockLSTMGrad and V2 by their 17 of a real type."""
    op = OPS[name]
    arguments = random_arguments(rng, op, sizes, use_peephole=use_peephole)
    weights = [rng.normal(size=a.shape) for a in oracle_grads(op, arguments, use_peephole)]
    got = gradient(
        lambda a: tf_weighted_sum(weights, package_grads(op, a, use_peephole)),
        [tf.constant(a) for a in arguments],
    )
    want = complex_step(
        lambda a: weighted_sum(weights, oracle_grads(op, a, use_peephole)), arguments
    )
    assert_all_close(got, want, ROUNDING)
    used = {Arguments._fields[k] for k, g in enumerate(want) if np.any(g)}
    always = {"saved_i", "saved_f", "saved_o", "saved_ci", "saved_co", "cs_grad", "h_grad"}
    assert used >= always  # the comparison was not one of zeros


@pytest.mark.parametrize("name", OPS)
def test_derivatives_of_gradient_ops_by_finite_differences(rng, name):
    op = OPS[name]
    point = list(random_arguments(rng, op, Sizes(3, 2, 3, 4), use_peephole=True))
    weights = [rng.normal(size=a.shape) for a in oracle_grads(op, point, True)]

    def function(arguments):
        return tf_weighted_sum(weights, package_grads(op, arguments, True))

    got = gradient(function, [tf.constant(a) for a in point])
    for _ in range(5):
        direction = unit_direction(rng, point)
        want = central_difference(
            lambda a: function([tf.constant(b) for b in a]).numpy(), point, direction
        )
        np.testing.assert_allclose(weighted_sum(direction, got), want, rtol=0, atol=DIFFERENCE)


@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("name", [name for name, op in OPS.items() if op.is_sequence])
def test_derivatives_of_gradient_ops_of_a_shorter_sequence(rng, name, length):
    op = OPS[name]
    arguments = random_arguments(rng, op, Sizes(3, 2, 3, 2), use_peephole=True)
    weights = [rng.normal(size=a.shape) for a in oracle_grads(op, arguments, True)]
    got = gradient(
        lambda a: tf_weighted_sum(weights, package_grads(op, a, True, length)),
        [tf.constant(a) for a in arguments],
    )
    want = complex_step(
        lambda a: weighted_sum(weights, oracle_grads(op, a, True, length)), arguments
    )
    assert_all_close(got, want, ROUNDING)


# --- third order, stock ops, forward mode ----------------------------------------------------


# BlockLSTM and BlockLSTMV2 share their derivatives but for the order of the gates.
CELL_AND_SEQUENCE = [
    CELL.name,
    SEQUENCE_V2.name,
    pytest.param(SEQUENCE.name, marks=pytest.mark.full),
]
ONE = [
    SEQUENCE.name,
    *(pytest.param(op.name, marks=pytest.mark.full) for op in (CELL, SEQUENCE_V2)),
]


@pytest.mark.parametrize("name", CELL_AND_SEQUENCE)
def test_third_derivatives(rng, name):
    """Along one direction, against the finite difference of the second derivative along it."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(2, 2, 2, 3))
    point = [*inputs, *random_like(rng, reference(op, inputs))]
    weights = random_like(rng, inputs)
    direction = unit_direction(rng, point)

    def second(arguments):
        gradients = gradient(
            lambda a: first_order(op, a, weights, use_peephole=True, cell_clip=0.0), arguments
        )
        return tf_weighted_sum(direction, gradients)

    got = gradient(second, [tf.constant(a) for a in point])
    for _ in range(2):
        other = unit_direction(rng, point)
        want = central_difference(
            lambda a: second([tf.constant(b) for b in a]).numpy(), point, other
        )
        np.testing.assert_allclose(weighted_sum(other, got), want, rtol=0, atol=DIFFERENCE)


@pytest.mark.parametrize("name", ONE)
def test_third_derivatives_of_gradient_ops(rng, name):
    op = OPS[name]
    point = list(random_arguments(rng, op, Sizes(2, 2, 2, 3), use_peephole=True))
    weights = [rng.normal(size=a.shape) for a in oracle_grads(op, point, True)]
    direction = unit_direction(rng, point)

    def derivative(arguments):
        gradients = gradient(
            lambda a: tf_weighted_sum(weights, package_grads(op, a, True)), arguments
        )
        return tf_weighted_sum(direction, gradients)

    got = gradient(derivative, [tf.constant(a) for a in point])
    other = unit_direction(rng, point)
    want = central_difference(
        lambda a: derivative([tf.constant(b) for b in a]).numpy(), point, other
    )
    np.testing.assert_allclose(weighted_sum(other, got), want, rtol=0, atol=DIFFERENCE)


@pytest.mark.parametrize("options", OPTIONS)
def test_second_derivatives_of_the_stock_cell(rng, options):
    """TensorFlow has its cell in half and float32 only: float32, against the oracle."""
    chosen = OPTIONS[options]
    inputs = random_inputs(rng, CELL, Sizes(1, 3, 2, 4), "float32")
    upstream = random_like(rng, reference(CELL, inputs), "float32")
    weights = random_like(rng, inputs, "float32")

    def function(arguments):
        values = Inputs(*arguments[:8])
        with tf.GradientTape() as tape:
            tape.watch(list(values))
            outputs = call(CELL, values, module=tf.raw_ops, **chosen)
        gradients = tape.gradient(list(outputs), list(values), list(arguments[8:]))
        return tf_weighted_sum(tensors(weights, "float32"), gradients)

    point = [*inputs, *upstream]
    got = gradient(function, [tf.constant(a, tf.float32) for a in point])

    def oracle(arguments):
        values = Inputs(*arguments[:8])
        saved = reference(CELL, values, **chosen)
        peephole = chosen.get("use_peephole", False)
        gradients = reference_backward(
            CELL, values, saved, Outputs(*arguments[8:]), use_peephole=peephole
        )
        return weighted_sum(weights, gradients)

    # Some hundred roundings of 6e-8 in sums of size ten.
    assert_all_close(got, complex_step(oracle, point), 2e-5)


@pytest.mark.parametrize("name", ONE)
def test_forward_mode(rng, name):
    """tf.autodiff.ForwardAccumulator differentiates the gradient by its upstream."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(3, 2, 3, 4))
    tangents = random_like(rng, inputs)
    given = tensors(inputs, "float64")
    with tf.autodiff.ForwardAccumulator(
        list(given), [tf.constant(t) for t in tangents]
    ) as accumulator:
        outputs = call(op, given, use_peephole=True)
    step = 1e-30
    moved = Inputs(*(a + 1j * step * t for a, t in zip(inputs, tangents, strict=True)))
    want = reference(op, moved, use_peephole=True)
    for field, a, b in zip(Outputs._fields, outputs, want, strict=True):
        np.testing.assert_allclose(
            accumulator.jvp(a), b.imag / step, rtol=1e-12, atol=1e-12, err_msg=field
        )


@pytest.mark.parametrize("name", ONE)
def test_hessian_is_symmetric(rng, name):
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, Sizes(2, 2, 2, 2)), "float64")
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(inputs.b)
        with tf.GradientTape() as inner:
            inner.watch(inputs.b)
            loss = tf.reduce_sum(call(op, inputs, cell_clip=0.0).h ** 2)
        slope = inner.gradient(loss, inputs.b)
    hessian = outer.jacobian(slope, inputs.b, experimental_use_pfor=False).numpy()
    assert np.abs(hessian).max() > 1e-3
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-14)
