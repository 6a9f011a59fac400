"""tf_lstm_ops.composite.mpsgraph, through which the second derivatives go, beside the oracle."""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from oracle.mpsgraph import Arguments, Results
from tf_lstm_ops.composite import mpsgraph

from .cases import GATE_ACTIVATIONS, PAIRS, Case, random_arguments, random_like
from .grid import call, reference, reference_backward, tensor, tensors

# Composite and oracle both only round: some hundred roundings of 1e-16 in sums of size ten.
ROUNDING = 1e-12
BOTH = Case(direction="bidirectional")
# In the order of the op's inputs: after the recurrent weight the input weight, and so on.
INPUTS = ["source", "recurrent_weight", "input_weight", "bias", "init_state", "init_cell"]


def inputs_of(arguments, mask, dtype="float64"):
    """The eight inputs as tensors; of those that are absent the shape is [0]."""
    values = [*(getattr(arguments, name) for name in INPUTS), mask, arguments.peephole]
    return [tensor(np.zeros(0) if a is None else a, dtype) for a in values]


def forward(case, inputs):
    return mpsgraph._mpsgraph_lstm(*inputs, **case.attributes)


def gradients(case, inputs, upstream):
    return mpsgraph._mpsgraph_lstm_gradients(inputs, list(upstream), **case.attributes)


def random_point(rng, case, dtype="float64"):
    arguments, mask = random_arguments(rng, case, dtype)
    upstream = random_like(rng, reference(case, arguments, mask), dtype)
    return arguments, mask, upstream


def absent_as_empty(values):
    return [np.zeros(0) if a is None else a for a in values]


def assert_all_close(got, want, tolerance=ROUNDING):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        assert a.shape == b.shape, k
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=str(k))


@pytest.mark.sampled
@pytest.mark.parametrize("case", PAIRS, ids=str)
def test_values_and_gradients(rng, case):
    arguments, mask, upstream = random_point(rng, case)
    inputs, want = inputs_of(arguments, mask), reference(case, arguments, mask)
    assert_all_close(forward(case, inputs), [want.output, want.cell, want.z_state])
    got = gradients(case, inputs, tensors(upstream))
    want = reference_backward(case, arguments, mask, upstream)
    assert_all_close(got, absent_as_empty(want))


@pytest.mark.parametrize("name", Results._fields)
def test_each_upstream_alone(rng, name):
    """The others absent, but for the first, which never is. A final state's may be [1, N, D*H]."""
    arguments, mask, upstream = random_point(rng, BOTH)
    only = Results(*(u if k == name else 0 * u for k, u in upstream._asdict().items()))
    given = [tensor(u if k in ("output", name) else np.zeros(0)) for k, u in only._asdict().items()]
    want = reference_backward(BOTH, arguments, mask, only)
    assert_all_close(gradients(BOTH, inputs_of(arguments, mask), given), want)
    if name in ("state", "final_cell"):
        given = [u[tf.newaxis] if u.shape.rank == 2 else u for u in given]
        assert_all_close(gradients(BOTH, inputs_of(arguments, mask), given), want)


@pytest.mark.parametrize("kink", [-2.5, 0.0, 2.5])
@pytest.mark.parametrize("activation", ["relu", "hard_sigmoid"])
def test_the_slope_at_a_kink_is_that_of_the_oracle(activation, kink):
    """All pre-activations are at the kink, and so is the cell state where that is positive."""
    case = replace(
        Case(time=1, input_weight=False, bias=False, peephole=False, mask="none", init_state=False),
        **dict.fromkeys((*GATE_ACTIVATIONS, "activation"), activation),
    )
    shapes = case.shapes
    arguments = Arguments(
        source=np.full(shapes.source, kink),
        recurrent_weight=np.ones(shapes.recurrent_weight),
        init_cell=np.full(shapes.init_cell, kink),
    )
    upstream = Results(*map(np.ones_like, reference(case, arguments, None)))
    got = gradients(case, inputs_of(arguments, None), tensors(upstream))
    want = reference_backward(case, arguments, None, upstream)
    assert_all_close(got, absent_as_empty(want), 0)


def test_the_mask_has_no_gradient(rng):
    arguments, mask, upstream = random_point(rng, BOTH)
    inputs = inputs_of(arguments, mask)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(inputs)
        output, *_ = forward(BOTH, inputs)
        first = gradients(BOTH, inputs, tensors(upstream))
    assert tape.gradient(output, inputs[6]) is None
    assert tape.gradient(first, inputs[6]) is None
    assert all(g is not None for k, g in enumerate(tape.gradient(first, inputs)) if k != 6)


@pytest.mark.parametrize("sizes", [{"time": 0}, {"batch": 0}], ids=str)
def test_empty(rng, sizes):
    case = replace(BOTH, **sizes)
    arguments, mask, upstream = random_point(rng, case)
    inputs, want = inputs_of(arguments, mask), reference(case, arguments, mask)
    assert_all_close(forward(case, inputs), [want.output, want.cell, want.z_state])
    want = reference_backward(case, arguments, mask, upstream)
    assert_all_close(gradients(case, inputs, tensors(upstream)), want)


@pytest.mark.full
def test_xla(rng):
    """The sizes may be unknown, but for the cell's; XLA knows them when it compiles. (Without XLA:
    test_second_order.)"""
    case = Case(direction="reverse")
    arguments, mask, upstream = random_point(rng, case)
    point = [*inputs_of(arguments, mask), *tensors(upstream)]
    specs = [tf.TensorSpec([None] * a.shape.rank, a.dtype) for a in point]
    specs[1] = tf.TensorSpec(point[1].shape, point[1].dtype)

    def function(*values):
        return gradients(case, list(values[:8]), values[8:])

    traced = tf.function(function, input_signature=specs, jit_compile=True)
    assert_all_close(traced(*point), function(*point))


def test_the_cell_size_must_be_known(rng):
    arguments, mask = random_arguments(rng, BOTH)
    inputs = inputs_of(arguments, mask)
    specs = [tf.TensorSpec([None] * a.shape.rank, a.dtype) for a in inputs]
    traced = tf.function(lambda *values: forward(BOTH, values), input_signature=specs)
    with pytest.raises(ValueError, match=r"recurrent_weight.shape\[-1\] must be known"):
        traced.get_concrete_function()


@pytest.mark.parametrize("dtype", ["half", "bfloat16"])
def test_narrow_types_are_computed_in_float32(rng, dtype):
    arguments, mask, upstream = random_point(rng, BOTH, dtype)
    narrow = inputs_of(arguments, mask, dtype), tensors(upstream, dtype)
    wide = inputs_of(arguments, mask, "float32"), tensors(upstream, "float32")
    got, want = (
        [*forward(BOTH, inputs), *gradients(BOTH, inputs, given)]
        for inputs, given in (narrow, wide)
    )
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        assert a.dtype == dtype
        same = tf.cast(a, tf.float32) == tf.cast(tf.cast(b, dtype), tf.float32)
        assert np.all(same), f"result {k}"


@pytest.mark.parametrize("case", PAIRS[::6], ids=str)
def test_equals_the_fused_op(rng, case):
    arguments, mask = random_arguments(rng, case)
    fused = call(case, tensors(arguments), tensor(mask))
    assert_all_close(forward(case, inputs_of(arguments, mask)), fused)
