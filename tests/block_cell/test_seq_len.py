"""seq_len_max: how many steps run, and that nothing past them is read, written or left over."""

import numpy as np
import pytest
import tensorflow as tf

from oracle.block_cell import Inputs, Outputs, zero_upstream

from .accuracy import assert_accurate, bounds
from .grid import (
    DTYPES,
    OPS,
    SEQUENCES,
    Sizes,
    arrays,
    call,
    call_grad,
    random_inputs,
    random_like,
    reference,
    reference_backward,
    tensors,
)

SIZES = Sizes(5, 3, 4, 6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", range(SIZES.time + 1))
@pytest.mark.parametrize("name", SEQUENCES)
def test_outputs_are_zero_past_the_length(rng, name, length, dtype):
    """All seven, bit for bit +0; stock leaves five of them unwritten."""
    op = OPS[name]
    inputs = random_inputs(rng, op, SIZES, dtype)
    got = call(op, tensors(inputs, dtype), length, use_peephole=True)
    for field, a in zip(Outputs._fields, arrays(got), strict=True):
        assert not a[length:].any() and not np.signbit(a[length:]).any(), field
        assert np.all(a[:length] != 0), field

    def evaluate(cast, store):
        values = Inputs(*map(cast, inputs))
        return reference(op, values, length, store=store, use_peephole=True)

    assert_accurate(got, bounds(evaluate, dtype))


@pytest.mark.parametrize("length", range(SIZES.time + 1))
@pytest.mark.parametrize("name", SEQUENCES)
def test_a_short_sequence_is_the_beginning_of_a_long_one(rng, name, length):
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES, "float32"), "float32")
    short, long = call(op, inputs, length), call(op, inputs)
    cut = call(op, inputs._replace(x=inputs.x[:length]))
    for a, b, c in zip(short, long, cut, strict=True):
        np.testing.assert_array_equal(a[:length], b[:length])
        np.testing.assert_array_equal(a[:length], c)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", range(SIZES.time + 1))
@pytest.mark.parametrize("name", SEQUENCES)
def test_gradients(rng, name, length, dtype):
    """x_grad is zero past the length, and upstream gradients there count for nothing."""
    op = OPS[name]
    inputs = random_inputs(rng, op, SIZES, dtype)
    upstream = random_like(rng, reference(op, inputs), dtype)
    given = tensors(inputs, dtype)
    with tf.GradientTape() as tape:
        tape.watch(list(given))
        outputs = call(op, given, length, use_peephole=True)
    got = Inputs(*tape.gradient(list(outputs), list(given), list(tensors(upstream, dtype))))
    assert not got.x.numpy()[length:].any()

    def evaluate(cast, store):
        values, by = Inputs(*map(cast, inputs)), Outputs(*map(cast, upstream))
        saved = reference(op, values, length, store=store, use_peephole=True)
        return reference_backward(op, values, saved, by, length, store, use_peephole=True)

    assert_accurate(got, bounds(evaluate, dtype))
    if length == 0:
        assert not any(a.any() for a in arrays(got))


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("length", range(SIZES.time))
@pytest.mark.parametrize("name", SEQUENCES)
def test_nothing_past_the_length_is_read(rng, name, length, value):
    """NaN or Inf in padding reaches no result, forward or backward."""
    op = OPS[name]
    inputs = random_inputs(rng, op, SIZES, "float32")
    clean = tensors(inputs, "float32")
    inputs.x[length:] = value
    dirty = tensors(inputs, "float32")
    saved = call(op, clean, length)
    for a, b in zip(saved, call(op, dirty, length), strict=True):
        np.testing.assert_array_equal(a, b)

    padding = np.arange(SIZES.time)[:, None, None] >= length
    spoiled = Outputs(*(tf.where(padding, np.float32(value), a) for a in saved))
    upstream = [tf.ones_like(saved.cs), 0.5 * tf.ones_like(saved.h)]
    spoiled_upstream = [tf.where(padding, np.float32(value), a) for a in upstream]
    want = call_grad(op, clean, saved, *upstream, length)
    got = call_grad(op, dirty, spoiled, *spoiled_upstream, length)
    for field, a, b in zip(Inputs._fields, got, want, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=field)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SEQUENCES)
def test_length_zero(rng, name, dtype):
    """No step: outputs zero, the state's gradients are zero as nothing depends on it."""
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES, dtype), dtype)
    outputs = call(op, inputs, 0)
    assert all(not a.any() for a in arrays(outputs))
    ones = tf.ones_like(outputs.cs)
    gradients = call_grad(op, inputs, outputs, ones, ones, 0, use_peephole=True)
    for field, a, b in zip(Inputs._fields, gradients, inputs, strict=True):
        assert a.shape == b.shape and not np.any(arrays([a])[0]), field


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SEQUENCES)
def test_no_time_at_all(rng, name, dtype):
    """T = 0: outputs of shape [0, B, H], gradients zero."""
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, Sizes(0, 3, 4, 6), dtype), dtype)
    with tf.GradientTape() as tape:
        tape.watch(list(inputs))
        outputs = call(op, inputs, 0)
    assert all(a.shape == (0, 3, 6) for a in outputs)
    gradients = tape.gradient(list(outputs), list(inputs), unconnected_gradients="zero")
    for field, a, b in zip(Inputs._fields, gradients, inputs, strict=True):
        assert a.shape == b.shape and not np.any(arrays([a])[0]), field
    zero = tf.zeros_like(outputs.cs)
    for a in call_grad(op, inputs, outputs, zero, zero, 0):
        assert not np.any(arrays([a])[0])


@pytest.mark.parametrize(
    "length", [3, np.int64(3), np.array(3), tf.constant(3, tf.int64), tf.Variable(3, dtype="int64")]
)
@pytest.mark.parametrize("name", SEQUENCES)
def test_what_a_length_may_be(rng, name, length):
    op = OPS[name]
    inputs = tensors(random_inputs(rng, op, SIZES, "float32"), "float32")
    want = call(op, inputs, tf.constant(3, tf.int64))
    np.testing.assert_array_equal(call(op, inputs, length).h, want.h)


@pytest.mark.parametrize("name", SEQUENCES)
def test_upstream_of_the_gradient_op_counts_within_the_length_only(rng, name):
    op = OPS[name]
    inputs = random_inputs(rng, op, SIZES)
    saved = reference(op, inputs, 3)
    by = random_like(rng, saved)
    upstream = zero_upstream(saved, cs=by.cs, h=by.h)
    got = call_grad(op, tensors(inputs, "float64"), tensors(saved, "float64"), by.cs, by.h, 3)
    want = reference_backward(op, inputs, saved, upstream, 3)
    for field, a, b in zip(Inputs._fields, arrays(got), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=field)
