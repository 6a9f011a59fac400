"""Any boolean mask: what a masked step does to outputs, states and gradients.

Here against the NumPy reference and against what a mask means; test_parity.py has stock Keras.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    MASKS,
    Sizes,
    assert_close,
    assert_same,
    copy_weights,
    evaluate,
    evaluate_oracle,
    make_mask,
    make_pair,
    random_inputs,
    random_weights,
    rounding,
)

import tf_lstm_ops

LSTM = tf_lstm_ops.keras.LSTM
SIZES = Sizes(batch=4, time=6, inputs=3, units=7)


def make_layer(rng, sizes=SIZES, dtype="float64", **options):
    options = {"return_sequences": True, "return_state": True, **options}
    layer = LSTM(sizes.units, dtype=dtype, **options)
    layer.build((sizes.batch, sizes.time, sizes.inputs))
    random_weights(layer, rng)
    return layer


@pytest.mark.parametrize("initial_state", [False, True])
@pytest.mark.parametrize("zero_output_for_mask", [False, True])
@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("kind", MASKS)
def test_against_the_reference(kind, go_backwards, zero_output_for_mask, initial_state, rng):
    for return_sequences in False, True:
        layer = make_layer(
            rng,
            go_backwards=go_backwards,
            zero_output_for_mask=zero_output_for_mask,
            return_sequences=return_sequences,
        )
        assert layer.uses_fused_op
        inputs = random_inputs(SIZES, rng, initial_state)
        mask = make_mask(kind, SIZES.batch, SIZES.time, rng)
        assert_same(
            evaluate(layer, inputs, mask), evaluate_oracle(layer, inputs, mask), rounding(SIZES)
        )


def test_every_mask_of_one_sequence(rng):
    """All 2⁵ masks at once, as the rows of a batch."""
    sizes = Sizes(batch=32, time=5, inputs=2, units=3)
    mask = (np.arange(32)[:, None] >> np.arange(5)) % 2 == 1
    layer = make_layer(rng, sizes)
    inputs = random_inputs(sizes, rng, states=True)
    assert_same(
        evaluate(layer, inputs, mask), evaluate_oracle(layer, inputs, mask), rounding(sizes)
    )


@pytest.mark.parametrize("go_backwards", [False, True])
def test_masked_steps_are_as_if_left_out(go_backwards, rng):
    layer = make_layer(rng, go_backwards=go_backwards)
    x, h0, c0 = random_inputs(SIZES, rng, states=True)
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    _, h, c = evaluate(layer, [x, h0, c0], mask).results
    for row in range(SIZES.batch):
        alone = slice(row, row + 1)
        short = x[alone][:, mask[row]]
        assert 0 < short.shape[1] < SIZES.time
        _, h_short, c_short = evaluate(layer, [short, h0[alone], c0[alone]]).results
        assert_close(h[alone], h_short, rounding(SIZES))
        assert_close(c[alone], c_short, rounding(SIZES))


@pytest.mark.parametrize("zero_output_for_mask", [False, True])
def test_fully_masked_rows_keep_the_initial_state(zero_output_for_mask, rng):
    layer = make_layer(rng, zero_output_for_mask=zero_output_for_mask)
    inputs = random_inputs(SIZES, rng, states=True)
    mask = np.ones((SIZES.batch, SIZES.time), bool)
    mask[1] = False
    got = evaluate(layer, inputs, mask)
    outputs, h, c = got.results
    np.testing.assert_array_equal(outputs[1], 0)
    np.testing.assert_array_equal(h[1], inputs[1][1])
    np.testing.assert_array_equal(c[1], inputs[2][1])
    # The states pass unchanged, so their gradients are the upstream ones; the input has none.
    positions = np.cos(np.arange(h.size)).reshape(h.shape)
    np.testing.assert_array_equal(got.gradients["h0"][1], positions[1])
    np.testing.assert_array_equal(got.gradients["c0"][1], positions[1])
    np.testing.assert_array_equal(got.gradients["x"][1], 0)
    assert np.all(outputs[0] != 0)


@pytest.mark.parametrize("kind", ["right", "left", "holes", "one_row_false", "all_false"])
@pytest.mark.parametrize("padding", [1e30, np.inf, np.nan])
def test_padding_is_not_read(kind, padding, rng):
    """Whatever stands at masked steps, results are the same bits, and its gradient is zero."""
    layer = make_layer(rng, dtype="float32")
    x, h0, c0 = random_inputs(SIZES, rng, states=True)
    mask = make_mask(kind, SIZES.batch, SIZES.time, rng)
    padded = np.where(mask[..., None], x, padding)
    got, wanted = (evaluate(layer, [a, h0, c0], mask) for a in (padded, x))
    for a, b in zip(got.results, wanted.results, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(got.gradients["x"][~mask], 0)
    for name in "h0", "c0", "kernel", "recurrent_kernel", "bias":
        np.testing.assert_array_equal(got.gradients[name], wanted.gradients[name], name)


@pytest.mark.parametrize("go_backwards", [False, True])
def test_a_row_does_not_depend_on_its_batch(go_backwards, rng):
    """The same bits alone and among rows of other lengths."""
    layer = make_layer(rng, dtype="float32", go_backwards=go_backwards)
    inputs = random_inputs(SIZES, rng, states=True)
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    together = evaluate(layer, inputs, mask).results
    for row in range(SIZES.batch):
        alone = slice(row, row + 1)
        results = evaluate(layer, [a[alone] for a in inputs], mask[alone]).results
        for got, wanted in zip(results, together, strict=True):
            np.testing.assert_array_equal(got, wanted[alone])


def test_a_mask_of_ones_changes_no_bit(rng):
    layer = make_layer(rng, dtype="float32")
    inputs = random_inputs(SIZES, rng, states=True)
    mask = np.ones((SIZES.batch, SIZES.time), bool)
    got, wanted = evaluate(layer, inputs, mask), evaluate(layer, inputs)
    for a, b in zip(got.results, wanted.results, strict=True):
        np.testing.assert_array_equal(a, b)
    assert_same(got, wanted, 0)


@pytest.mark.parametrize(
    "convert",
    [
        lambda m: m.astype("int32"),
        lambda m: m.astype("float32"),
        lambda m: m[..., None],
        lambda m: [m],
        tf.constant,
    ],
    ids=["int", "float", "rank 3", "list", "tensor"],
)
def test_forms_of_masks(convert, rng):
    """As stock: any dtype, a trailing dimension of one, a list of one mask."""
    ours, theirs = make_pair(SIZES, rng, return_sequences=True, return_state=True, dtype="float64")
    inputs = random_inputs(SIZES, rng, states=False)
    mask = convert(make_mask("holes", SIZES.batch, SIZES.time, rng))
    assert_same(evaluate(ours, inputs, mask), evaluate(theirs, inputs, mask), rounding(SIZES))


@pytest.mark.parametrize("shape", [(4, 5), (4, 7), (3, 6)])
def test_masks_of_wrong_shape_are_refused(shape, rng):
    layer = make_layer(rng)
    x = np.zeros((SIZES.batch, SIZES.time, SIZES.inputs))
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        layer(x, mask=np.ones(shape, bool))


@pytest.mark.parametrize("first", ["masking", "embedding"])
def test_masks_that_come_with_the_input(first, rng):
    """The mask of Masking or Embedding reaches the layer, and leaves it for the next one."""
    tokens = rng.integers(0, 5, size=(SIZES.batch, SIZES.time))
    tokens[0] = 0
    models = []
    for lstm in LSTM, keras.layers.LSTM:
        if first == "masking":
            x, start = np.eye(5)[tokens] * (tokens > 0)[..., None], keras.layers.Masking()
        else:
            x, start = tokens, keras.layers.Embedding(5, 3, mask_zero=True)
        models.append(
            keras.Sequential([start, lstm(7, return_sequences=True), lstm(4, go_backwards=True)])
        )
        models[-1](x)
    random_weights(models[1], rng)
    copy_weights(models[1], models[0])
    got, wanted = (m.predict(x, verbose=0) for m in models)
    # Embedded, the mask is that of tokens > 0; by Masking that of inputs with any non-zero.
    assert_close(got, wanted, 2 * rounding(SIZES, "float32"))
    assert np.all(got[0] == 0), "the fully masked row"
    assert np.all(got[1:].any(axis=1))
