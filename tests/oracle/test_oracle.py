"""The oracle is right: it agrees with its own numerical derivatives and with stock TensorFlow."""

from itertools import product

import keras
import numpy as np
import pytest
import tensorflow as tf

from oracle import block_cell
from oracle.block_cell import Inputs, Outputs
from oracle.derivatives import central_difference, complex_step, unit_direction
from oracle.keras_lstm import Arguments, Options, Results, keras_lstm, keras_lstm_backward

SIZES = [(1, 1, 1, 1), (3, 2, 0, 3), (4, 3, 5, 2), (2, 2, 3, 7)]  # T, B, I, H
GATE_ORDERS = ["icfo", "ifco"]
CLIP = 0.3  # clips about half of the states below


def random_inputs(rng, time, batch, inputs, units):
    shapes = [(time, batch, inputs), (batch, units), (batch, units), (inputs + units, 4 * units)]
    shapes += [(units,)] * 3 + [(4 * units,)]
    return Inputs(*(rng.normal(size=shape) for shape in shapes))


def random_upstream(rng, outputs):
    return Outputs(*(rng.normal(size=a.shape) for a in outputs))


def weighted_sum(weights, values):
    return sum(np.sum(w * v) for w, v in zip(weights, values, strict=True))


def assert_all_close(got, want, tolerance):
    for name, a, b in zip(want._fields, got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


# --- against numerical derivatives -----------------------------------------------------------


@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize("cell_clip", [0.0, CLIP])
@pytest.mark.parametrize("gate_order", GATE_ORDERS)
@pytest.mark.parametrize("sizes", SIZES)
def test_sequence_gradients_are_the_complex_step(rng, sizes, gate_order, cell_clip, use_peephole):
    """With the clip too: the complex step treats it as straight-through, as the gradient does."""
    inputs = random_inputs(rng, *sizes)
    options = {"use_peephole": use_peephole, "gate_order": gate_order}
    steps = sizes[0] - sizes[0] // 3  # a shorter sequence too

    def run(arguments):
        return block_cell.sequence(steps, Inputs(*arguments), cell_clip=cell_clip, **options)

    outputs = run(inputs)
    upstream = random_upstream(rng, outputs)
    got = block_cell.sequence_backward(steps, inputs, outputs, upstream, **options)
    want = complex_step(lambda a: weighted_sum(upstream, run(a)), inputs)
    assert_all_close(got, Inputs(*want), 1e-12)  # rounding only
    if cell_clip and sizes[-1] > 1:
        clipped = np.abs(outputs.cs[:steps]) == CLIP
        assert clipped.any() and not clipped.all()


@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize("gate_order", GATE_ORDERS)
@pytest.mark.parametrize("sizes", SIZES)
def test_cell_gradients_are_the_finite_difference(rng, sizes, gate_order, use_peephole):
    inputs = random_inputs(rng, *sizes)
    inputs = inputs._replace(x=inputs.x[0])
    options = {"use_peephole": use_peephole, "gate_order": gate_order}

    def run(arguments):
        return block_cell.cell(Inputs(*arguments), cell_clip=0.0, **options)

    outputs = run(inputs)
    upstream = random_upstream(rng, outputs)
    gradients, gates = block_cell.cell_backward(inputs, outputs, upstream, **options)
    np.testing.assert_array_equal(gates.sum(0), gradients.b)
    for _ in range(5):
        direction = unit_direction(rng, inputs)
        want = central_difference(lambda a: weighted_sum(upstream, run(a)), inputs, direction)
        # The error of the difference quotient (see there), for loss and derivatives up to 100.
        np.testing.assert_allclose(weighted_sum(gradients, direction), want, rtol=0, atol=1e-10)


def test_forward_of_one_unit_by_hand():
    """One number per gate, so that each line of the equations can be written out."""
    import math

    def s(z):
        return 1 / (1 + math.exp(-z))

    x, c, h, wci, wcf, wco = 0.5, 0.7, -0.3, 0.11, -0.13, 0.17
    wx, wh, b = [0.2, -0.4, 0.6, 0.8], [0.1, 0.3, -0.5, 0.7], [0.01, 0.02, 0.03, 0.04]
    inputs = Inputs(*map(np.array, ([[x]], [[c]], [[h]], [wx, wh], [wci], [wcf], [wco], b)))
    zi, zc, zf, zo = (x * wx[k] + h * wh[k] + b[k] for k in range(4))
    i, f, ci = s(zi + wci * c), s(zf + 1.5 + wcf * c), math.tanh(zc)
    cs = max(-0.6, min(0.6, i * ci + f * c))
    o, co = s(zo + wco * cs), math.tanh(cs)
    got = block_cell.cell(inputs, forget_bias=1.5, cell_clip=0.6, use_peephole=True)
    assert cs != i * ci + f * c or abs(cs) < 0.6
    np.testing.assert_allclose(np.ravel(got), [i, cs, f, o, ci, co, o * co], rtol=1e-15)


# --- against stock TensorFlow ----------------------------------------------------------------

# Stock calculates in float32: a sum of at most 13 products of size one, through smooth functions,
# then at most 4 steps. 32 roundings of 6e-8, over values that reach 4 in the gradients.
FLOAT32 = 8e-6


def as_float32(values):
    return {name: a.astype(np.float32) for name, a in values._asdict().items()}


def rounded(values):
    return type(values)(*(a.astype(np.float32).astype(np.float64) for a in values))


@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize("cell_clip", [-1.0, 0.0, CLIP])
@pytest.mark.parametrize("sizes", SIZES)
def test_cell_agrees_with_stock(rng, sizes, cell_clip, use_peephole):
    inputs = random_inputs(rng, *sizes)
    inputs = rounded(inputs._replace(x=inputs.x[0]))
    stock = tf.raw_ops.LSTMBlockCell(
        **as_float32(inputs), forget_bias=0.5, cell_clip=cell_clip, use_peephole=use_peephole
    )
    got = block_cell.cell(inputs, forget_bias=0.5, cell_clip=cell_clip, use_peephole=use_peephole)
    assert_all_close(got, Outputs(*stock), FLOAT32)

    saved = rounded(got)
    upstream = rounded(
        block_cell.zero_upstream(
            got, cs=rng.normal(size=got.cs.shape), h=rng.normal(size=got.h.shape)
        )
    )
    stock = tf.raw_ops.LSTMBlockCellGrad(
        **as_float32(inputs),
        **{k: v for k, v in as_float32(saved).items() if k != "h"},
        cs_grad=upstream.cs.astype(np.float32),
        h_grad=upstream.h.astype(np.float32),
        use_peephole=use_peephole,
    )
    gradients, gates = block_cell.cell_backward(inputs, saved, upstream, use_peephole=use_peephole)
    for name, want in [
        ("cs_prev_grad", gradients.cs_prev),
        ("dicfo", gates),
        ("wci_grad", gradients.wci),
        ("wcf_grad", gradients.wcf),
        ("wco_grad", gradients.wco),
    ]:
        np.testing.assert_allclose(
            getattr(stock, name), want, rtol=FLOAT32, atol=FLOAT32, err_msg=name
        )


@pytest.mark.parametrize("use_peephole", [False, True])
@pytest.mark.parametrize("cell_clip", [0.0, CLIP])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("sizes", SIZES)
def test_sequence_agrees_with_stock(rng, sizes, version, cell_clip, use_peephole):
    """Past seq_len_max stock leaves i, f, o, ci and co unwritten: only cs and h are compared."""
    inputs = rounded(random_inputs(rng, *sizes))
    steps = sizes[0] - sizes[0] // 3
    if version == 1:
        op, op_grad, order = tf.raw_ops.BlockLSTM, tf.raw_ops.BlockLSTMGrad, "icfo"
        bias = {"forget_bias": 0.5}
    else:
        op, op_grad, order = tf.raw_ops.BlockLSTMV2, tf.raw_ops.BlockLSTMGradV2, "ifco"
        bias = {}
    options = {"use_peephole": use_peephole}
    stock = op(seq_len_max=steps, **as_float32(inputs), cell_clip=cell_clip, **bias, **options)
    got = block_cell.sequence(
        steps,
        inputs,
        cell_clip=cell_clip,
        gate_order=order,
        forget_bias=bias.get("forget_bias", 0.0),
        **options,
    )
    assert_all_close(
        Outputs(*(a[:steps] for a in got)), Outputs(*(a[:steps] for a in stock)), FLOAT32
    )
    assert not np.any(stock.cs[steps:]) and not np.any(stock.h[steps:])
    assert all(not a[steps:].any() for a in got)

    saved = rounded(got)
    upstream = rounded(
        block_cell.zero_upstream(
            got, cs=rng.normal(size=got.cs.shape), h=rng.normal(size=got.h.shape)
        )
    )
    stock = op_grad(
        seq_len_max=steps,
        **as_float32(inputs),
        **as_float32(saved),
        cs_grad=upstream.cs.astype(np.float32),
        h_grad=upstream.h.astype(np.float32),
        **options,
    )
    want = block_cell.sequence_backward(steps, inputs, saved, upstream, gate_order=order, **options)
    # Sums over the batch and over time on top: 16 times the allowance of the forward pass.
    assert_all_close(Inputs(*stock), want, 16 * FLOAT32)


# --- the layer -------------------------------------------------------------------------------

MASKS = {
    "none": None,
    "right": [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0], [1, 0, 0, 0, 0]],
    "left": [[0, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 0, 0, 1]],
    "holes": [[1, 0, 1, 0, 1], [0, 1, 1, 0, 0], [1, 1, 0, 1, 1]],
    "rows": [[0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 1, 0, 1, 0]],
    "nothing": [[0, 0, 0, 0, 0]] * 3,
}
BATCH, TIME, FEATURES, UNITS = 3, 5, 2, 4


def random_arguments(rng, peephole):
    shapes = [(BATCH, TIME, FEATURES), (BATCH, UNITS), (BATCH, UNITS), (FEATURES, 4 * UNITS)]
    shapes += [(UNITS, 4 * UNITS), (4 * UNITS,), (3, UNITS)]
    arguments = Arguments(*(rng.normal(size=shape) for shape in shapes))
    return arguments._replace(peephole=arguments.peephole * peephole)


def random_dropout(rng, gates):
    """Masks of factors 0 or 2, as dropout of rate one half draws them."""
    shape = (4,) if gates else ()
    return (
        2.0 * rng.integers(2, size=(*shape, BATCH, FEATURES)),
        2.0 * rng.integers(2, size=(*shape, BATCH, UNITS)),
    )


@pytest.mark.sampled(11)
@pytest.mark.parametrize("cell_clip", [None, CLIP])
@pytest.mark.parametrize("dropout", [False, True])
@pytest.mark.parametrize("zero_output_for_mask", [False, True])
@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("mask", MASKS)
def test_layer_gradients_are_the_complex_step(
    rng, mask, go_backwards, zero_output_for_mask, dropout, cell_clip
):
    arguments = random_arguments(rng, peephole=1)
    input_dropout, recurrent_dropout = random_dropout(rng, gates=True) if dropout else (1.0, 1.0)
    options = Options(
        mask=None if MASKS[mask] is None else np.array(MASKS[mask], bool),
        go_backwards=go_backwards,
        zero_output_for_mask=zero_output_for_mask,
        cell_clip=cell_clip,
        input_dropout=input_dropout,
        recurrent_dropout=recurrent_dropout,
    )
    results = keras_lstm(arguments, options)
    upstream = Results(*(rng.normal(size=a.shape) for a in results))
    got = keras_lstm_backward(arguments, upstream, options)
    want = complex_step(
        lambda a: weighted_sum(upstream, keras_lstm(Arguments(*a), options)), arguments
    )
    assert_all_close(got, Arguments(*want), 1e-12)  # rounding only


def run_layer(arguments, mask, upstream=None, masks=None, **options):
    """Stock Keras in float64: results, and gradients if upstream gradients are given."""
    keras.utils.set_random_seed(1)
    layer = keras.layers.LSTM(
        UNITS, return_sequences=True, return_state=True, dtype="float64", **options
    )
    layer.build(arguments.x.shape)
    layer.set_weights([arguments.kernel, arguments.recurrent_kernel, arguments.bias])
    x, h0, c0 = (tf.constant(a) for a in (arguments.x, arguments.h0, arguments.c0))
    if masks:
        layer.cell._dropout_mask, layer.cell._recurrent_dropout_mask = (
            [tf.constant(m) for m in part] for part in masks
        )
    with tf.GradientTape() as tape:
        tape.watch([x, h0, c0])
        results = layer(x, initial_state=[h0, c0], mask=mask, training=masks is not None)
    if upstream is None:
        return Results(*results), None
    weights = [w.value for w in layer.trainable_weights]
    gradients = tape.gradient(
        results,
        [x, h0, c0, *weights],
        [tf.constant(a) for a in upstream],
        unconnected_gradients="zero",
    )
    return Results(*results), gradients


# Keras' unrolled loop forgets to turn the mask round when it zeroes the outputs of a sequence run
# backwards, so that this one combination differs from Keras' own symbolic loop.
LOOPS = [c for c in product([False, True], repeat=3) if c != (True, True, True)]


@pytest.mark.sampled
@pytest.mark.parametrize("go_backwards, zero_output_for_mask, unroll", LOOPS)
@pytest.mark.parametrize("mask", MASKS)
def test_layer_agrees_with_keras(rng, mask, go_backwards, zero_output_for_mask, unroll):
    arguments = random_arguments(rng, peephole=0)
    valid = None if MASKS[mask] is None else np.array(MASKS[mask], bool)
    options = Options(
        mask=valid, go_backwards=go_backwards, zero_output_for_mask=zero_output_for_mask
    )
    want = keras_lstm(arguments, options)
    upstream = Results(*(rng.normal(size=a.shape) for a in want))
    got, gradients = run_layer(
        arguments,
        valid,
        upstream,
        go_backwards=go_backwards,
        zero_output_for_mask=zero_output_for_mask,
        unroll=unroll,
    )
    assert_all_close(want, got, 1e-13)  # rounding in float64
    # All but the peephole, which stock Keras lacks.
    *ours, _ = keras_lstm_backward(arguments, upstream, options)
    for name, a, b in zip(Arguments._fields[:-1], ours, gradients, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, err_msg=name)


def test_layer_dropout_agrees_with_keras(rng):
    """With both rates set, Keras multiplies by one mask per gate for inputs and for states."""
    arguments = random_arguments(rng, peephole=0)
    masks = random_dropout(rng, gates=True)
    want = keras_lstm(arguments, Options(input_dropout=masks[0], recurrent_dropout=masks[1]))
    got, _ = run_layer(arguments, None, masks=masks, dropout=0.5, recurrent_dropout=0.5)
    assert_all_close(want, got, 1e-13)
    plain, _ = run_layer(arguments, None)
    assert np.abs(plain.h - got.h).max() > 0.01


def test_layer_is_the_block_cell_with_other_arguments(rng):
    """Peephole and clip, which stock Keras lacks, against the sequence that stock ops proved."""
    arguments = random_arguments(rng, peephole=1)
    want = block_cell.sequence(
        TIME,
        Inputs(
            arguments.x.swapaxes(0, 1),
            arguments.c0,
            arguments.h0,
            np.concatenate([arguments.kernel, arguments.recurrent_kernel]),
            *arguments.peephole,
            arguments.bias,
        ),
        forget_bias=0.0,
        cell_clip=CLIP,
        use_peephole=True,
        gate_order="ifco",
    )
    got = keras_lstm(arguments, Options(cell_clip=CLIP))
    want = Results(want.h.swapaxes(0, 1), want.h[-1], want.cs[-1])
    assert_all_close(got, want, 1e-14)


def test_options_change_results(rng):
    """No option of the layer is without effect (an oracle that ignores one would prove nothing)."""
    arguments = random_arguments(rng, peephole=1)
    plain = keras_lstm(arguments).outputs
    mask = np.array(MASKS["holes"], bool)
    masked = keras_lstm(arguments, Options(mask=mask)).outputs
    dropped = random_dropout(rng, gates=False)
    for other in [
        masked,
        keras_lstm(arguments, Options(go_backwards=True)).outputs,
        keras_lstm(arguments, Options(cell_clip=CLIP)).outputs,
        keras_lstm(arguments, Options(input_dropout=dropped[0])).outputs,
        keras_lstm(arguments, Options(recurrent_dropout=dropped[1])).outputs,
        keras_lstm(arguments._replace(peephole=0 * arguments.peephole)).outputs,
    ]:
        assert np.abs(other - plain).max() > 0.01
    zeroed = keras_lstm(arguments, Options(mask=mask, zero_output_for_mask=True)).outputs
    assert not zeroed[~mask].any()
    np.testing.assert_array_equal(zeroed[mask], masked[mask])


def test_gate_orders_permute_columns(rng):
    """ICFO and IFCO differ by the order of the blocks alone."""
    inputs = random_inputs(rng, 3, 2, 3, 4)

    def swap(a):
        i, c, f, o = np.split(a, 4, axis=-1)
        return np.concatenate([i, f, c, o], axis=-1)

    for use_peephole, forget_bias in product([False, True], [0.0, 1.0]):
        options = {"use_peephole": use_peephole, "forget_bias": forget_bias}
        assert_all_close(
            block_cell.sequence(3, inputs, gate_order="icfo", **options),
            block_cell.sequence(
                3,
                inputs._replace(w=swap(inputs.w), b=swap(inputs.b)),
                gate_order="ifco",
                **options,
            ),
            1e-14,
        )
