"""The outputs of LSTMBlockCell, BlockLSTM and BlockLSTMV2."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from oracle.block_cell import Inputs, Outputs, sigmoid
from tf_lstm_ops import raw_ops

from .accuracy import (
    UNIT_ROUNDOFF,
    assert_accurate,
    assert_close_to_stock,
    assert_root_mean_square,
    bounds,
    largest,
)
from .grid import (
    CASES,
    CELL,
    CLIP,
    DTYPES,
    LONG_SUMS,
    OPS,
    OPTIONS,
    Sizes,
    arrays,
    call,
    call_grad,
    random_inputs,
    reference,
    round_to,
    tensors,
    tf_dtype,
)


def evaluation(op, inputs, **options):
    return lambda cast, store: reference(op, Inputs(*map(cast, inputs)), store=store, **options)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes, options", CASES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_outputs(rng, name, sizes, options, dtype):
    op = OPS[name]
    chosen = op.select(OPTIONS[options])
    inputs = random_inputs(rng, op, sizes, dtype)
    got = call(op, tensors(inputs, dtype), **chosen)
    assert got._fields == Outputs._fields
    assert all(a.dtype == tf_dtype(dtype) for a in got)
    assert_accurate(got, bounds(evaluation(op, inputs, **chosen), dtype))
    if chosen.get("cell_clip") == CLIP and sizes.batch * sizes.units > 8:
        clipped = np.abs(arrays(got)[1]) == CLIP
        assert clipped.any() and not clipped.all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", ["float32", "half"])
@pytest.mark.parametrize("sizes, options", CASES, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_agrees_with_stock(rng, name, sizes, options, dtype):
    op = OPS[name]
    chosen = op.select(OPTIONS[options])
    inputs = random_inputs(rng, op, sizes, dtype)
    ours = call(op, tensors(inputs, dtype), **chosen)
    stock = call(op, tensors(inputs, dtype), module=tf.raw_ops, **chosen)
    assert_close_to_stock(ours, stock, bounds(evaluation(op, inputs, **chosen), dtype))


@pytest.mark.parametrize("batch", [2, 7])
def test_one_step_of_many_units(rng, batch):
    """More units than one thread sums at once, of few rows and of more."""
    inputs = random_inputs(rng, CELL, Sizes(1, batch, 3, 1030), "float32")
    got = call(CELL, tensors(inputs, "float32"))
    assert_accurate(got, bounds(evaluation(CELL, inputs), "float32"))


@pytest.mark.sampled
@pytest.mark.parametrize("sizes", LONG_SUMS, ids=str)
@pytest.mark.parametrize("name", OPS)
def test_root_mean_square_error(rng, name, sizes):
    op = OPS[name]
    inputs = random_inputs(rng, op, sizes, "float32")
    got = call(op, tensors(inputs, "float32"), use_peephole=True)
    assert_root_mean_square(got, evaluation(op, inputs, use_peephole=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gates_are_exact_over_their_whole_range(dtype):
    """Relative error of σ and tanh for pre-activations of every size, far into saturation.

    One feature with weight one hands z on unchanged, so that what is left is the error of the
    functions. σ is exp, a sum and a quotient, and the reference in float64 has its own error: four
    and six units of roundoff. A 16-bit result is that of float32, rounded once.
    """
    limit = {"half": 8.0, "bfloat16": 80.0, "float32": 80.0, "float64": 600.0}[dtype]
    z = np.concatenate([np.linspace(-limit, limit, 4001), 2.0 ** -np.arange(1, 13)])
    z = round_to(dtype)(z)
    column = np.zeros((z.size, 1))
    weights = np.array([[1.0] * 4, [0.0] * 4])
    inputs = Inputs(z[:, None], column, column, weights, *[np.zeros(1)] * 3, np.zeros(4))
    got = call(CELL, tensors(inputs, dtype), forget_bias=0.0)
    allowed = UNIT_ROUNDOFF[dtype] * {"float32": 4, "float64": 6}.get(dtype, 1.01)
    for field, function in [("i", sigmoid), ("f", sigmoid), ("o", sigmoid), ("ci", np.tanh)]:
        value, want = tf.cast(getattr(got, field), tf.float64).numpy()[:, 0], function(z)
        error = np.abs(value - want) / np.where(want == 0, 1, np.abs(want))
        worst = int(np.argmax(error))
        assert error[worst] <= allowed, f"{field}({z[worst]:.4g}): {error[worst]:.3g}"


@pytest.mark.parametrize("dtype", ["half", "bfloat16"])
@pytest.mark.parametrize("use_peephole", [False, True])
def test_16_bit_cell_rounds_once(rng, dtype, use_peephole):
    """i, f, ci and cs of one step: float32 inside, one rounding at the end."""
    inputs = random_inputs(rng, CELL, Sizes(1, 16, 40, 48), dtype)
    got = call(CELL, tensors(inputs, dtype), use_peephole=use_peephole)
    want = reference(CELL, inputs, use_peephole=use_peephole)
    single = reference(
        CELL, Inputs(*(a.astype(np.float32) for a in inputs)), use_peephole=use_peephole
    )
    for field in ("i", "f", "ci", "cs"):
        value = tf.cast(getattr(got, field), tf.float64).numpy()
        right = getattr(want, field)
        inner = 2 * largest(getattr(single, field) - right) + 2.0**-22
        smallest = {"half": 2.0**-24, "bfloat16": 0.0}[dtype]  # spacing of subnormals
        allowed = UNIT_ROUNDOFF[dtype] * np.abs(right) + inner + smallest / 2
        assert np.all(np.abs(value - right) <= allowed), field


@pytest.mark.parametrize("dtype, even", [("half", 2.0**11), ("bfloat16", 2.0**8)])
def test_16_bit_ties_round_to_even(dtype, even):
    """With i = f = ci = 1, saturated, cs = 1 + cs_prev: halfway between two values of the type."""
    cs_prev = np.array([[even], [even + 2]])
    w = np.array([[100.0, 100.0, 100.0, 0.0], [0.0] * 4])
    inputs = Inputs(np.ones((2, 1)), cs_prev, 0 * cs_prev, w, *[np.zeros(1)] * 3, np.zeros(4))
    got = call(CELL, tensors(inputs, dtype), cell_clip=0.0)
    np.testing.assert_array_equal(tf.cast(got.cs, tf.float64), [[even], [even + 4]])


@pytest.mark.parametrize("bound", [0.0, -2.0, 1e-3, 0.5, 1e30])
@pytest.mark.parametrize("name", OPS)
def test_clip_limits_cs_and_what_follows_from_it(rng, name, bound):
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(3, 4, 5, 6), "float32")
    free = call(op, tensors(inputs, "float32"), cell_clip=0.0)
    got = call(op, tensors(inputs, "float32"), cell_clip=bound)
    if bound <= 0 or bound > 100:
        for a, b in zip(free, got, strict=True):
            np.testing.assert_array_equal(a, b)
    else:
        assert largest(got.cs.numpy()) == np.float32(bound)
        np.testing.assert_allclose(got.co, np.tanh(got.cs), rtol=1e-6)
        assert largest(got.h.numpy()) <= np.tanh(bound) * (1 + 1e-6)


@pytest.mark.parametrize("name", OPS)
def test_peephole_values_count_only_with_use_peephole(rng, name):
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, Sizes(2, 3, 4, 5), "float32"), "float32")
    garbage = {field: tf.fill([5], np.float32(np.nan)) for field in ("wci", "wcf", "wco")}
    for a, b in zip(call(op, inputs), call(op, inputs._replace(**garbage)), strict=True):
        np.testing.assert_array_equal(a, b)
    for field in garbage:
        without = call(op, inputs._replace(**{field: tf.zeros([5])}), use_peephole=True)
        assert np.any(without.h != call(op, inputs, use_peephole=True).h), field


@pytest.mark.parametrize("name", OPS)
def test_signature_is_that_of_stock(name):
    """Same signature, argument for argument, but for `name`, which callers pass by name."""
    for op_name in (name, OPS[name].grad):
        ours, stock = (
            inspect.signature(getattr(m, op_name)).parameters for m in (raw_ops, tf.raw_ops)
        )
        assert [p for p in ours if p != "name"] == [p for p in stock if p != "name"]
        assert {p.kind for p in ours.values()} == {inspect.Parameter.KEYWORD_ONLY}
        for argument, parameter in stock.items():
            assert ours[argument].default == parameter.default, argument


@pytest.mark.parametrize("name", OPS)
def test_outputs_are_a_named_tuple_like_the_stock_ops(rng, name):
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, Sizes(2, 3, 4, 5), "float32"), "float32")
    ours, stock = call(op, inputs), call(op, inputs, module=tf.raw_ops)
    assert ours._fields == stock._fields and isinstance(ours, tuple)
    ours, stock = (
        call_grad(op, inputs, stock, stock.cs, stock.h, module=m) for m in (raw_ops, tf.raw_ops)
    )
    assert ours._fields == stock._fields and isinstance(ours, tuple)
    assert [a.shape for a in ours] == [a.shape for a in stock]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPS)
def test_inputs_stay_as_they_are(rng, name, dtype):
    """No output shares memory with an input, even where the input is used for the last time."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(2, 16, 16, 16), dtype)
    given = tensors(inputs, dtype)
    outputs = call(op, given)
    call_grad(op, given, outputs, outputs.cs, outputs.h)
    for field, before, after in zip(Inputs._fields, inputs, arrays(given), strict=True):
        np.testing.assert_array_equal(before, after, err_msg=field)


# --- values that are not finite --------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["x", "cs_prev", "h_prev"])
@pytest.mark.parametrize("name", OPS)
def test_a_row_that_is_not_finite_touches_no_other(rng, name, field, value):
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(3, 5, 4, 6), "float32")
    clean = arrays(call(op, tensors(inputs, "float32"), use_peephole=True))
    getattr(inputs, field)[..., 2, 1] = value
    got = arrays(call(op, tensors(inputs, "float32"), use_peephole=True))
    with np.errstate(invalid="ignore"):
        want = reference(op, inputs, use_peephole=True)
    others = [0, 1, 3, 4]
    for output, a, b, c in zip(Outputs._fields, got, clean, want, strict=True):
        np.testing.assert_array_equal(a[..., others, :], b[..., others, :], err_msg=output)
        np.testing.assert_array_equal(np.isnan(a), np.isnan(c), err_msg=output)
        np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-6, err_msg=output)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("field", ["w", "b", "wci", "wcf", "wco"])
@pytest.mark.parametrize("use_peephole", [False, True])
def test_a_weight_that_is_not_finite_touches_its_own_unit(rng, field, value, use_peephole):
    """In one step: column 1 of the gates feeds unit 1 only."""
    inputs = random_inputs(rng, CELL, Sizes(1, 3, 4, 6), "float32")
    getattr(inputs, field)[..., 1] = value
    got = arrays(call(CELL, tensors(inputs, "float32"), use_peephole=use_peephole))
    with np.errstate(invalid="ignore"):
        want = reference(CELL, inputs, use_peephole=use_peephole)
    for output, a, b in zip(Outputs._fields, got, want, strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b), err_msg=output)
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=output)
        assert np.isfinite(a[:, [0, 2, 3, 4, 5]]).all(), output


@pytest.mark.parametrize("dtype", DTYPES)
def test_clip_of_values_that_are_not_finite(dtype):
    """±Inf becomes ±clip; NaN stays NaN."""
    cs_prev = np.array([[np.inf, -np.inf, np.nan, 0.0]])
    zero = np.zeros((1, 4))
    inputs = Inputs(zero[:, :0], cs_prev, zero, np.zeros((4, 16)), *[zero[0]] * 3, np.zeros(16))
    got = call(CELL, tensors(inputs, dtype), cell_clip=2.0)
    np.testing.assert_array_equal(tf.cast(got.cs, tf.float64), [[2.0, -2.0, np.nan, 0.0]])
