"""Derivatives of derivatives: of MPSGraphLSTMGradients, also as the tape calls it.

Two independent witnesses: finite differences of the package's own first derivatives, over all
options, and the complex step through the oracle's backward pass, element by element.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from block_cell.accuracy import UNIT_ROUNDOFF, largest
from block_cell.grid import arrays
from oracle.derivatives import central_difference, complex_step, unit_direction
from oracle.mpsgraph import Results
from sums import gradient, tf_weighted_sum, weighted_sum

from .cases import (
    EVERYTHING,
    PAIRS,
    STEP,
    Case,
    Outputs,
    present,
    random_arguments,
    random_like,
    smooth_direction,
    with_values,
)
from .grid import (
    call,
    call_grads,
    reference,
    reference_backward,
    tape_grads,
    tensor,
    tensors,
)

# Complex step and tape both only round: some hundred roundings, through sums of size ten.
ROUNDING = 1e-11
# Fourth-order differences (see central_difference) of sums of size ten, relative to derivatives
# that unbounded activations let grow.
DIFFERENCE = 1e-9

KINDS = ["tape", "op"]
NOTHING = Results(*[None] * len(Results._fields))
BOTH = Case(direction="bidirectional", inputs=1, units=2)
# Few parameters, since each costs a complex step.
SMALL = [replace(case, inputs=1, units=2) for case in PAIRS[2::7]]


class Point:
    """Arguments, a mask, gradients of the three outputs or of what the gradient op takes, and
    weights of the first derivatives. `values` are all that is differentiated by."""

    def __init__(self, rng, case, kind="tape", dtype="float64"):
        self.case, self.kind, self.dtype = case, kind, dtype
        self.arguments, self.mask = random_arguments(rng, case, dtype)
        self.given = list(present(self.arguments))
        results = reference(case, self.arguments, self.mask)
        self.names = Outputs._fields if kind == "tape" else Results._fields[:3]
        upstream = random_like(rng, results, dtype)
        self.upstream = [getattr(upstream, name) for name in self.names]
        self.weights = list(random_like(rng, present(self.arguments), dtype))

    @property
    def values(self):
        return [*self.given, *self.upstream]

    def results(self, other, values):
        """The upstream gradients among the values, and others."""
        upstream = dict(zip(self.names, values[len(self.given) :], strict=True))
        return other._replace(**upstream)

    def first(self, values):
        """Σ weights∘gradients, of tensors."""
        arguments = with_values(self.arguments, values)
        upstream = self.results(NOTHING, values)
        mask = tensor(self.mask, self.dtype)
        if self.kind == "tape":
            found = tape_grads(self.case, arguments, mask, upstream)
        else:
            saved = call(self.case, arguments, mask)
            found = call_grads(self.case, arguments, mask, saved, upstream)
        return tf_weighted_sum(constants(self.weights, self.dtype), present(found))

    def second(self):
        """The gradient of that."""
        return gradient(self.first, constants(self.values, self.dtype))

    def oracle(self, values):
        """`first` of arrays, complex ones too."""
        arguments = with_values(self.arguments, values)
        results = reference(self.case, arguments, self.mask)
        upstream = self.results(Results(*map(np.zeros_like, results)), values)
        found = reference_backward(self.case, arguments, self.mask, upstream, results)
        return weighted_sum(self.weights, present(found))


def constants(values, dtype="float64"):
    return [tensor(a, dtype) for a in values]


def assert_all_close(got, want, tolerance=ROUNDING):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=str(k))


def assert_is_the_difference(function, values, direction, got):
    """`got` are the derivatives of `function`, along a direction."""
    want = central_difference(lambda a: function(constants(a)).numpy(), values, direction, STEP)
    slope = weighted_sum(direction, got)
    np.testing.assert_allclose(slope, want, rtol=DIFFERENCE, atol=DIFFERENCE)


def check_finite_differences(rng, kind, case):
    """By all arguments and all upstream gradients."""
    point = Point(rng, case, kind)
    direction = smooth_direction(rng, case, point.arguments, point.mask, point.upstream)
    assert_is_the_difference(point.first, point.values, direction, point.second())


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind, case", zip(itertools.cycle(KINDS), PAIRS), ids=str)
def test_finite_differences(rng, kind, case):
    check_finite_differences(rng, kind, case)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(len(EVERYTHING)))
def test_finite_differences_of_many_combinations(rng, part):
    for kind, case in zip(itertools.cycle(KINDS), EVERYTHING[part][::7]):
        check_finite_differences(rng, kind, case)


@pytest.mark.parametrize(
    "kind, case",
    [
        pytest.param(kind, case, marks=pytest.mark.full if k >= 4 else ())
        for k, (kind, case) in enumerate(zip(itertools.cycle(KINDS), SMALL))
    ],
    ids=str,
)
def test_complex_step(rng, kind, case):
    point = Point(rng, case, kind)
    want = complex_step(point.oracle, point.values)
    assert_all_close(point.second(), want)
    assert all(map(np.any, want))


def test_third_derivatives(rng):
    """Along one direction, against the finite difference of the second derivative along it."""
    point = Point(rng, BOTH)
    along = unit_direction(rng, point.values)

    def second(values):
        found = gradient(point.first, values)
        return tf_weighted_sum(along, found)

    direction = unit_direction(rng, point.values)
    third = gradient(second, constants(point.values))
    assert_is_the_difference(second, point.values, direction, third)


def test_what_the_forward_op_left_has_no_gradient(rng):
    """z_state and cell_output_fwd are functions of the arguments."""
    point = Point(rng, BOTH, "op")
    arguments, mask = tensors(point.arguments), tensor(point.mask)
    saved = call(BOTH, arguments, mask)
    upstream = Results(*map(tensor, point.upstream), None, None)
    with tf.GradientTape() as tape:
        tape.watch([mask, *saved])
        found = call_grads(BOTH, arguments, mask, saved, upstream)
    assert tape.gradient(found.source, [mask, *saved]) == [None] * 4


@pytest.mark.full
def test_in_a_function_of_unknown_time_and_batch(rng):
    point = Point(rng, Case("reverse", peephole=False, init_state=False, init_cell=False))
    values = constants(point.values)
    specs = [tf.TensorSpec([None] * a.shape.rank, a.dtype) for a in values]
    specs[1] = tf.TensorSpec(values[1].shape, values[1].dtype)  # the cell size must be known
    traced = tf.function(lambda *a: gradient(point.first, list(a)), input_signature=specs)
    assert_all_close(traced(*values), point.second())


@pytest.mark.parametrize(
    "context",
    [lambda f: f, pytest.param(tf.function, marks=pytest.mark.full)],
    ids=["eager", "function"],
)
def test_in_a_function_without_training(rng, context):
    """What the forward op does not return has no gradient either."""
    case = Case("reverse", mask="none", peephole=False, init_state=False, init_cell=False)
    arguments, _ = random_arguments(rng, case)

    def second(values, **options):
        def loss(values):
            given = with_values(arguments, values)
            return tf.reduce_sum(call(case, given, None, **options)[0] ** 2)

        def penalty(values):
            return tf.add_n([tf.reduce_sum(g**2) for g in gradient(loss, values)])

        return gradient(penalty, values)

    values = constants(present(arguments))
    got = context(lambda: second(values, training=False, produce_cell=False))()
    assert_all_close(got, second(values, training=True, produce_cell=True))


# In units of roundoff of each tensor's largest number. 16 bits: the last rounding. float32: some
# roundings in each of three passes, which slopes of size two carry on from step to step.
UNITS = {"half": 1, "bfloat16": 1, "float32": 128}


@pytest.mark.parametrize("dtype", UNITS)
def test_other_types(rng, dtype):
    """Computed in float32, from values that the type can represent, and rounded at the end."""
    point = Point(rng, BOTH, dtype=dtype)
    got = point.second()
    assert {g.dtype for g in got} == {tf.as_dtype(dtype)}
    point.dtype = "float64"
    for k, (a, b) in enumerate(zip(arrays(got), arrays(point.second()), strict=True)):
        assert largest(a - b) <= UNITS[dtype] * UNIT_ROUNDOFF[dtype] * largest(b), k
