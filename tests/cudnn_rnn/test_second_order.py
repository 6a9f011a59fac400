"""Derivatives of derivatives: of CudnnRNNBackprop, V2 and V3, under our names and the stock ones.

Two independent witnesses: the complex step through the oracle's backward pass (element by element,
exact to rounding), and finite differences of the package's own first derivatives.
"""

from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf

from block_cell.accuracy import UNIT_ROUNDOFF, largest
from block_cell.grid import arrays, random_like, tensors
from oracle.cudnn_rnn import Arguments, Model, Results
from oracle.derivatives import central_difference, complex_step, unit_direction
from sums import gradient, tf_weighted_sum, weighted_sum
from tf_lstm_ops import _library, raw_ops

from .grid import (
    MODES,
    VERSIONS,
    Case,
    call,
    lengths_of,
    random_arguments,
    reference,
    reference_backward,
    tape_grads,
)

MODULES = pytest.mark.parametrize("module", [raw_ops, tf.raw_ops], ids=["own", "stock"])

# Complex step and tape both only round: some hundred roundings, through sums of size ten.
ROUNDING = 1e-11
# Fourth-order differences (see central_difference) of sums of size ten.
DIFFERENCE = 1e-9


def small(mode, lengths="unsorted", **options):
    """Two layers, two directions and lengths; few parameters, since each costs a complex step."""
    model = Model(mode, **{"inputs": 3, "units": 2, "layers": 2, "directions": 2, **options})
    return Case(model, 3, 3, lengths)


PROJECTED = small("lstm", num_proj=1)
CASES = [
    PROJECTED._replace(model=replace(PROJECTED.model, time_major=False)),
    small("gru", inputs=2, skip_input=True),
    *(small(mode, "full", layers=1, directions=1) for mode in MODES),
]
MORE = [small("lstm")]
ALL = [
    *map(small, MODES[1:]),
    PROJECTED,
    small("lstm", inputs=2, skip_input=True),
    small("lstm", "full", layers=3, directions=1, units=1),
]
# A difference would step over the kinks of relu.
SMOOTH = [
    small("lstm", layers=1),
    small("lstm", layers=1, num_proj=1),
    small("gru", layers=1),
    small("rnn_tanh", layers=1),
]


def constants(values, dtype="float64"):
    return [tf.constant(a, tf.as_dtype(dtype)) for a in values]


def random_point(rng, case, dtype="float64"):
    """Arguments and upstream gradients in one list, and weights of the first derivatives."""
    arguments = random_arguments(rng, case, dtype)
    upstream = random_like(rng, reference(case, arguments), dtype)
    return [*arguments, *upstream], random_like(rng, arguments, dtype)


def first_order(case, point, weights, version=3, **options):
    """Σ weights∘gradients of the forward op, as a function of its arguments and upstreams."""
    arguments, upstream = Arguments(*point[:4]), Results(*point[4:])
    gradients = tape_grads(case, arguments, upstream, version, **options)[1]
    return tf_weighted_sum(weights, gradients)


def by_complex_step(case, point, weights, dropout=None):
    def function(values):
        arguments, upstream = Arguments(*values[:4]), Results(*values[4:])
        return weighted_sum(weights, reference_backward(case, arguments, upstream, dropout=dropout))

    return complex_step(function, point)


def assert_all_close(got, want, tolerance=ROUNDING):
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=f"argument {k}")


def assert_is_the_difference(rng, function, point, got):
    """`got` are the derivatives of `function`, along random directions."""
    for _ in range(3):
        direction = unit_direction(rng, point)
        want = central_difference(lambda a: function(constants(a)).numpy(), point, direction)
        np.testing.assert_allclose(weighted_sum(direction, got), want, rtol=0, atol=DIFFERENCE)


# --- of the tape -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case",
    [
        *CASES,
        *(pytest.param(case, marks=pytest.mark.full) for case in MORE),
        *(pytest.param(case, marks=pytest.mark.slow) for case in ALL),
    ],
    ids=str,
)
def test_second_derivatives(rng, case):
    """By all four arguments and all three upstream gradients."""
    point, weights = random_point(rng, case)
    want = by_complex_step(case, point, weights)
    for module in (raw_ops, tf.raw_ops):
        got = gradient(
            lambda a, m=module: first_order(case, a, weights, module=m), constants(point)
        )
        assert_all_close(got, want)
    assert all(np.any(w) for k, w in enumerate(want) if k not in (2, 6))  # input_c, output_c


@pytest.mark.sampled(12)
@MODULES
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_second_derivatives_are_finite_differences_of_the_first(rng, case, version, module):
    if version < 3:
        case = case._replace(lengths="full", model=replace(case.model, num_proj=0))
    point, weights = random_point(rng, case)

    def function(values):
        return first_order(case, values, weights, version, module=module)

    assert_is_the_difference(rng, function, point, gradient(function, constants(point)))


@pytest.mark.parametrize(
    ("case", "module"),
    [
        pytest.param(small("lstm", directions=1), raw_ops, id="own-lstm"),
        pytest.param(small("rnn_tanh"), tf.raw_ops, id="stock-tanh"),
        pytest.param(PROJECTED, raw_ops, id="own-projected", marks=pytest.mark.full),
        pytest.param(small("gru"), raw_ops, id="own-gru", marks=pytest.mark.slow),
        pytest.param(small("lstm"), tf.raw_ops, id="stock-lstm", marks=pytest.mark.full),
    ],
)
def test_the_mask_of_the_forward_pass_serves_all_derivatives(rng, case, module):
    point, weights = random_point(rng, case)
    given = constants(point)
    with tf.GradientTape() as outer:
        outer.watch(given)
        with tf.GradientTape() as inner:
            inner.watch(given[:4])
            outputs = call(case, Arguments(*given[:4]), module=module, dropout=0.5, seed=3)
        first = inner.gradient(
            list(outputs[:3]), given[:4], given[4:], unconnected_gradients="zero"
        )
        value = tf_weighted_sum(weights, first)
    got = outer.gradient(value, given, unconnected_gradients="zero")
    mask = _library.load().tf_lstm_ops_cudnn_rnn_dropout_mask(reserve_space=outputs.reserve_space)
    assert 0 < np.count_nonzero(mask) < mask.shape.num_elements()
    assert_all_close(got, by_complex_step(case, point, weights, mask.numpy()))


@pytest.mark.parametrize(
    ("case", "module"),
    [
        pytest.param(small("gru"), raw_ops, id="own-gru"),
        pytest.param(PROJECTED, raw_ops, id="own-projected", marks=pytest.mark.full),
        pytest.param(small("rnn_tanh"), tf.raw_ops, id="stock-tanh", marks=pytest.mark.full),
        pytest.param(small("lstm"), tf.raw_ops, id="stock-lstm", marks=pytest.mark.slow),
    ],
)
def test_finite_differences_with_dropout(rng, monkeypatch, case, module):
    """Every call draws the same mask, so that the difference is that of one function."""
    monkeypatch.setenv("TF_CUDNN_RESET_RND_GEN_STATE", "1")
    point, weights = random_point(rng, case)

    def function(values):
        # A seed of its own: the kernel of these attributes is made with the variable set.
        return first_order(case, values, weights, module=module, dropout=0.4, seed=20260, seed2=7)

    assert_is_the_difference(rng, function, point, gradient(function, constants(point)))


# --- of the gradient ops themselves ----------------------------------------------------------


def backprop(case, values, forward, version=3, module=raw_ops):
    """The gradient op on arguments and upstream gradients, given what the forward op left."""
    m = case.model
    names = [*Arguments._fields, "output_backprop", "output_h_backprop", "output_c_backprop"]
    inputs = dict(zip(names, values, strict=True))
    inputs |= {k: getattr(forward, k) for k in (*Results._fields, "reserve_space")}
    attributes = {
        "rnn_mode": m.mode,
        "direction": "bidirectional" if m.directions == 2 else "unidirectional",
    }
    if version > 1:
        inputs["host_reserved"] = forward.host_reserved
    if version == 3:
        inputs["sequence_lengths"] = lengths_of(case)
        attributes |= {"num_proj": m.num_proj, "time_major": m.time_major}
    return getattr(module, VERSIONS[version].replace("RNN", "RNNBackprop"))(**inputs, **attributes)


@pytest.mark.sampled(12)
@MODULES
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("mode", MODES)
def test_derivatives_of_the_gradient_ops(rng, mode, version, module):
    case = small(mode, "unsorted" if version == 3 else "full", layers=1)
    point, weights = random_point(rng, case)
    given = constants(point)
    forward = call(case, Arguments(*given[:4]), version, module)
    left = [*forward[:3], forward.reserve_space]
    with tf.GradientTape() as tape:
        tape.watch([*given, *left])
        value = tf_weighted_sum(weights, backprop(case, given, forward, version, module))
    got = tape.gradient(value, {"point": given, "left": left})
    # What the forward op left is a function of the arguments: no gradient of its own.
    assert got["left"] == [None] * 4
    found = [tf.zeros_like(a) if g is None else g for a, g in zip(given, got["point"], strict=True)]
    assert_all_close(found, by_complex_step(case, point, weights))


# --- rules -----------------------------------------------------------------------------------


@pytest.mark.sampled(12)
@MODULES
@pytest.mark.parametrize(
    "case, options",
    [
        (small("lstm", layers=1), {"dropout": 0.5}),  # nothing to drop
        (small("gru", layers=1), {"input_mode": "auto_select"}),
        (small("gru", layers=1, inputs=2, skip_input=True), {"input_mode": "auto_select"}),
        (small("lstm", layers=1), {"num_proj": 2}),  # a projection to the cell size: none
    ],
    ids=str,
)
def test_attributes_that_change_nothing(rng, case, options, module):
    point, weights = random_point(rng, case)
    got, want = (
        gradient(
            lambda a, chosen=chosen: first_order(case, a, weights, module=module, **chosen),
            constants(point),
        )
        for chosen in (options, {})
    )
    assert_all_close(got, want)


@pytest.mark.sampled(12)
@MODULES
@pytest.mark.parametrize("mode", MODES)
def test_padding_is_not_read(rng, mode, module):
    case = small(mode, layers=1)
    point, weights = random_point(rng, case)

    def function(values):
        return first_order(case, values, weights, module=module)

    clean = gradient(function, constants(point))
    for row, length in enumerate(lengths_of(case)):
        point[0][length:, row] = np.nan
        assert not clean[0][length:, row].numpy().any()
    assert_all_close(gradient(function, constants(point)), clean)


@pytest.mark.parametrize(
    "case, module",
    [
        pytest.param(
            small("lstm", layers=1, num_proj=1), raw_ops, id="own-projected", marks=pytest.mark.full
        ),
        pytest.param(small("gru"), tf.raw_ops, id="stock-gru", marks=pytest.mark.slow),
    ],
)
def test_in_a_function_of_unknown_time_and_batch(rng, case, module):
    point, weights = random_point(rng, case)
    weights = Arguments(*constants(weights))
    signature = [
        tf.TensorSpec([None, None, a.shape[2]] if a.ndim == 3 else a.shape, tf.float64)
        for a in point
    ]
    states = case.model.layers * case.model.directions
    for k in (1, 2, 5, 6):
        if point[k].ndim == 3:
            signature[k] = tf.TensorSpec([states, None, point[k].shape[2]], tf.float64)

    @tf.function(input_signature=signature)
    def function(*values):
        return gradient(lambda a: first_order(case, a, weights, module=module), list(values))

    want = gradient(lambda a: first_order(case, a, weights), constants(point))
    assert_all_close(function(*constants(point)), want)


@pytest.mark.parametrize(
    ("case", "dtype"),
    [
        (small("gru", layers=1), "half"),
        (small("lstm", layers=1, num_proj=1), "bfloat16"),
        (small("rnn_tanh"), "float32"),
        *(
            pytest.param(*more, marks=pytest.mark.full)
            for more in (
                (small("lstm"), "half"),
                (small("lstm"), "bfloat16"),
                (PROJECTED, "float32"),
            )
        ),
    ],
    ids=str,
)
def test_other_types(rng, case, dtype):
    """Computed in float32 from exact values of the type, and rounded at the end: sixteen units
    of roundoff of each tensor's largest element, a few for each of the sums on the way."""
    point, weights = random_point(rng, case, dtype)
    given = tensors(weights, dtype)
    got = gradient(lambda a: first_order(case, a, given), constants(point, dtype))
    assert {g.dtype for g in got} == {tf.as_dtype(dtype)}
    want = gradient(lambda a: first_order(case, a, weights), constants(point))
    for k, (a, b) in enumerate(zip(arrays(got), arrays(want), strict=True)):
        assert largest(a - b) <= 16 * UNIT_ROUNDOFF[dtype] * largest(b), k


@pytest.mark.full
def test_third_derivatives(rng):
    """Along one direction, against the finite difference of the second derivative along it."""
    case = PROJECTED
    point, weights = random_point(rng, case)
    direction = unit_direction(rng, point)

    def second(values):
        found = gradient(lambda a: first_order(case, a, weights), values)
        return tf_weighted_sum(direction, found)

    assert_is_the_difference(rng, second, point, gradient(second, constants(point)))


@pytest.mark.parametrize(
    ("mode", "module"),
    [
        pytest.param("gru", raw_ops, id="own-gru"),
        pytest.param("lstm", raw_ops, id="own-lstm", marks=pytest.mark.slow),
        pytest.param("rnn_tanh", tf.raw_ops, id="stock-tanh", marks=pytest.mark.full),
    ],
)
def test_hessian_is_symmetric(rng, mode, module):
    case = small(mode, inputs=1, layers=1, directions=1, units=1)  # one backward pass per parameter
    given = tensors(random_arguments(rng, case), "float64")
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(given.params)
        with tf.GradientTape() as inner:
            inner.watch(given.params)
            loss = tf.reduce_sum(call(case, given, module=module).output ** 2)
        slope = inner.gradient(loss, given.params)
    hessian = outer.jacobian(slope, given.params, experimental_use_pfor=False).numpy()
    assert np.abs(hessian).max() > 1e-3
    np.testing.assert_allclose(hessian, hessian.T, rtol=0, atol=1e-13)
