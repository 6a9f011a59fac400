"""Long sequences, the smallest sizes, numbers at the ends of their range.

Empty batches and sequences: tests/*/test_empty.py. Speed with denormal numbers is not tested; see
docs/testing.md.
"""

import numpy as np
import pytest
import tensorflow as tf

from block_cell.grid import OPS, Sizes, arrays, call, random_inputs, reference, tensors
from cudnn_rnn import grid as cudnn_grid
from cudnn_rnn.grid import Case, random_arguments
from oracle.block_cell import Outputs
from oracle.cudnn_rnn import Model
from tf_lstm_ops import raw_ops

LONG = 100_000


@pytest.mark.parametrize("name", ["BlockLSTM", "BlockLSTMV2"])
def test_a_hundred_thousand_steps(rng, name):
    """H = 1. The oracle takes two seconds; the error does not grow with the steps, because a state
    forgets."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(2000, 1, 1, 1))
    x = np.tile(inputs.x, (LONG // 2000, 1, 1))
    inputs = inputs._replace(x=x)
    got = arrays(call(op, tensors(inputs, "float64"), cell_clip=0.0))
    # The inputs repeat, and what the first 2000 steps leave is forgotten: so do the outputs.
    want = reference(op, inputs._replace(x=x[:6000]), cell_clip=0.0)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a[:6000], b, rtol=0, atol=1e-12)
        np.testing.assert_allclose(a[-2000:], b[-2000:], rtol=0, atol=1e-12)


def test_gradients_of_a_hundred_thousand_steps(rng):
    """The gradient of the first input is that of a short sequence: the rest is forgotten. The
    gradient of the weights is a sum over all steps, of which each 2000 add the same."""
    op = OPS["BlockLSTM"]
    inputs = random_inputs(rng, op, Sizes(2000, 1, 1, 1))

    def gradients(repeats):
        x = tf.constant(np.tile(inputs.x, (repeats, 1, 1)))
        w = tf.constant(inputs.w)
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            results = call(op, tensors(inputs, "float64")._replace(x=x, w=w), cell_clip=0.0)
            value = tf.reduce_sum(results.h)
        return [g.numpy() for g in tape.gradient(value, [x, w])]

    one, two, three = (gradients(k) for k in (1, 2, 3))
    x_grad, w_grad = gradients(LONG // 2000)
    assert x_grad.shape == (LONG, 1, 1)
    np.testing.assert_allclose(x_grad[:1000], one[0][:1000], rtol=0, atol=1e-12)
    each = three[1] - two[1]
    # Sums of 1e5 terms of size one.
    np.testing.assert_allclose(w_grad, two[1] + (LONG // 2000 - 2) * each, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_one_unit_in_many_layers(rng, mode):
    case = Case(Model(mode, 1, 1, layers=8, directions=2), 3, 1)
    arguments = random_arguments(rng, case)
    got = cudnn_grid.call(case, tensors(arguments, "float64"))[:3]
    want = cudnn_grid.reference(case, arguments)
    for a, b in zip(arrays(got), want, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("scale", [1e-39, 1e-42, 1e-45])
def test_denormal_states(rng, name, scale):
    """TensorFlow lets its threads round denormal numbers to zero, so a decayed state costs no time.
    What is smaller than the smallest normal number may be zero, and is never anything else."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(3, 4, 3, 5), "float32")
    inputs = inputs._replace(
        x=np.zeros_like(inputs.x),
        cs_prev=np.float64(np.float32(scale * np.sign(inputs.cs_prev))),
        h_prev=np.zeros_like(inputs.h_prev),
        b=np.zeros_like(inputs.b),
    )
    got = arrays(call(op, tensors(inputs, "float32"), cell_clip=0.0))
    want = reference(op, inputs, cell_clip=0.0)
    for field, a, b in zip(Outputs._fields, got, want, strict=True):
        # The gates are of size one, all else is denormal.
        tolerance = 1e-6 if field in "ifo" else 2.0**-126
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance, err_msg=field)


@pytest.mark.parametrize("dtype", ["half", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("name", OPS)
def test_inf_and_nan_stay_in_their_row(rng, name, value, dtype):
    """An infinite or undefined input of one row changes no other row; in its own it gives what the
    oracle gives: limits of the gates, or NaN."""
    op = OPS[name]
    inputs = random_inputs(rng, op, Sizes(3, 4, 2, 5), dtype)
    clean = arrays(call(op, tensors(inputs, dtype), cell_clip=0.0))
    x = inputs.x.copy()
    x[(0, 2, 1) if op.is_sequence else (2, 1)] = value
    got = arrays(call(op, tensors(inputs._replace(x=x), dtype), cell_clip=0.0))
    with np.errstate(invalid="ignore", over="ignore"):
        want = reference(op, inputs._replace(x=x), cell_clip=0.0)
    others = [0, 1, 3]
    for k, (a, b, c) in enumerate(zip(got, clean, want, strict=True)):
        np.testing.assert_array_equal(a[..., others, :], b[..., others, :])
        is_nan, must_be = np.isnan(a[..., 2, :]), np.isnan(c[..., 2, :])
        np.testing.assert_array_equal(is_nan, must_be, err_msg=Outputs._fields[k])
    first = [a[0] if op.is_sequence else a for a in got]
    if np.isinf(value):
        gates = np.stack([first[k][2] for k in (0, 2)])  # i and f, without peepholes
        assert np.isin(gates, [0.0, 1.0]).all()


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_inf_and_nan_of_padding_are_not_read(rng, value):
    case = Case(Model("lstm", 3, 4, layers=2, directions=2), 4, 5, "unsorted")
    arguments = random_arguments(rng, case)
    lengths = cudnn_grid.lengths_of(case)
    dirty = arguments.input.copy()
    for row, length in enumerate(lengths):
        dirty[length:, row] = value
    clean, found = (
        cudnn_grid.call(case, tensors(arguments._replace(input=x), "float64"))[:3]
        for x in (arguments.input, dirty)
    )
    for a, b in zip(arrays(found), arrays(clean), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_batch_of_no_rows_of_many_steps():
    results = raw_ops.BlockLSTM(
        seq_len_max=tf.constant(LONG, tf.int64),
        x=tf.zeros([LONG, 0, 3]),
        cs_prev=tf.zeros([0, 4]),
        h_prev=tf.zeros([0, 4]),
        w=tf.ones([7, 16]),
        wci=tf.ones([4]),
        wcf=tf.ones([4]),
        wco=tf.ones([4]),
        b=tf.ones([16]),
    )
    assert all(a.shape == [LONG, 0, 4] for a in results)
