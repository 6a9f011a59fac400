"""Any boolean mask: what a masked step does to outputs, states and gradients.

Here against the NumPy reference and against what a mask means; test_parity.py has stock Keras.
"""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    FAMILIES,
    GATED,
    GRU,
    INPUTS,
    MASKS,
    Sizes,
    assert_close,
    assert_same,
    copy_weights,
    divided,
    evaluate,
    evaluate_oracle,
    label,
    make_layer,
    make_mask,
    make_pair,
    random_inputs,
    random_weights,
    rounding,
    upstream,
)

SIZES = Sizes(batch=4, time=6, inputs=3, units=7)


@pytest.mark.sampled(strength=2)
@pytest.mark.parametrize("initial_state", [False, True])
@pytest.mark.parametrize("zero_output_for_mask", [False, True])
@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize("kind", MASKS)
def test_against_the_reference(
    kind, go_backwards, zero_output_for_mask, initial_state, family, rng
):
    for return_sequences in False, True:
        layer = make_layer(
            family,
            SIZES,
            rng,
            go_backwards=go_backwards,
            zero_output_for_mask=zero_output_for_mask,
            return_sequences=return_sequences,
        )
        assert layer.uses_fused_op
        inputs = random_inputs(SIZES, rng, family if initial_state else None)
        mask = make_mask(kind, SIZES.batch, SIZES.time, rng)
        assert_same(
            evaluate(layer, inputs, mask), evaluate_oracle(layer, inputs, mask), rounding(SIZES)
        )


def test_every_mask_of_one_sequence(family, rng):
    """All 2⁵ masks at once, as the rows of a batch."""
    sizes = Sizes(batch=32, time=5, inputs=2, units=3)
    mask = (np.arange(32)[:, None] >> np.arange(5)) % 2 == 1
    layer = make_layer(family, sizes, rng)
    inputs = random_inputs(sizes, rng, family)
    assert_same(
        evaluate(layer, inputs, mask), evaluate_oracle(layer, inputs, mask), rounding(sizes)
    )


@pytest.mark.parametrize("go_backwards", [False, True])
def test_masked_steps_are_as_if_left_out(go_backwards, family, rng):
    layer = make_layer(family, SIZES, rng, go_backwards=go_backwards)
    x, *initial = random_inputs(SIZES, rng, family)
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    mask[:, 1], mask[:, 2] = False, True  # no row without a hole, none without a valid step
    _, *states = evaluate(layer, [x, *initial], mask).results
    for row in range(SIZES.batch):
        alone = slice(row, row + 1)
        short = x[alone][:, mask[row]]
        _, *wanted = evaluate(layer, [short, *(s[alone] for s in initial)]).results
        for state, state_wanted in zip(states, wanted, strict=True):
            assert_close(state[alone], state_wanted, rounding(SIZES))


@pytest.mark.parametrize("zero_output_for_mask", [False, True])
def test_fully_masked_rows_keep_the_initial_state(zero_output_for_mask, family, rng):
    layer = make_layer(family, SIZES, rng, zero_output_for_mask=zero_output_for_mask)
    inputs = random_inputs(SIZES, rng, family)
    mask = np.ones((SIZES.batch, SIZES.time), bool)
    mask[1] = False
    got = evaluate(layer, inputs, mask)
    outputs, *states = got.results
    np.testing.assert_array_equal(outputs[1], 0)
    # The states pass unchanged, so their gradients are the upstream ones; the input has none.
    for name, state, initial in zip(INPUTS[1:], states, inputs[1:], strict=False):
        np.testing.assert_array_equal(state[1], initial[1])
        np.testing.assert_array_equal(got.gradients[name][1], upstream(state)[1])
    np.testing.assert_array_equal(got.gradients["x"][1], 0)
    assert np.all(outputs[0] != 0)


@pytest.mark.parametrize("time", [1, 2])
def test_a_batch_without_a_step_keeps_the_initial_state(time, family, rng):
    sizes = SIZES._replace(time=time)
    inputs = random_inputs(sizes, rng, family)
    layer = make_layer(family, sizes, rng)
    outputs, *states = evaluate(layer, inputs, np.zeros((sizes.batch, time), bool)).results
    np.testing.assert_array_equal(outputs, 0)
    for state, initial in zip(states, inputs[1:], strict=True):
        np.testing.assert_array_equal(state, initial)


@pytest.mark.parametrize("kind", ["right", "left", "holes", "one_row_false", "all_false"])
@pytest.mark.parametrize("padding", [1e30, np.inf, np.nan])
def test_padding_is_not_read(kind, padding, family, rng):
    """Whatever stands at masked steps, results are the same bits, and its gradient is zero."""
    layer = make_layer(family, SIZES, rng, dtype="float32")
    x, *states = random_inputs(SIZES, rng, family)
    mask = make_mask(kind, SIZES.batch, SIZES.time, rng)
    padded = np.where(mask[..., None], x, padding)
    got, wanted = (evaluate(layer, [a, *states], mask) for a in (padded, x))
    np.testing.assert_array_equal(got.gradients["x"][~mask], 0)
    assert_same(got, wanted, 0)


@pytest.mark.parametrize("go_backwards", [False, True])
def test_a_row_does_not_depend_on_its_batch(go_backwards, family, rng):
    """The same bits alone and among rows of other lengths."""
    layer = make_layer(family, SIZES, rng, dtype="float32", go_backwards=go_backwards)
    inputs = random_inputs(SIZES, rng, family)
    mask = make_mask("holes", SIZES.batch, SIZES.time, rng)
    together = evaluate(layer, inputs, mask).results
    for row in range(SIZES.batch):
        alone = slice(row, row + 1)
        results = evaluate(layer, [a[alone] for a in inputs], mask[alone]).results
        for got, wanted in zip(results, together, strict=True):
            np.testing.assert_array_equal(got, wanted[alone])


def test_a_mask_of_ones_changes_no_bit(family, rng):
    layer = make_layer(family, SIZES, rng, dtype="float32")
    inputs = random_inputs(SIZES, rng, family)
    mask = np.ones((SIZES.batch, SIZES.time), bool)
    assert_same(evaluate(layer, inputs, mask), evaluate(layer, inputs), 0)


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
@pytest.mark.parametrize("family", GATED, ids=label)
def test_forms_of_masks(convert, family, rng):
    """As stock: any dtype, a trailing dimension of one, a list of one mask."""
    options = {"return_sequences": True, "return_state": True, "dtype": "float64"}
    ours, theirs = make_pair(family, SIZES, rng, **options)
    inputs = random_inputs(SIZES, rng)
    mask = convert(make_mask("holes", SIZES.batch, SIZES.time, rng))
    assert_same(evaluate(ours, inputs, mask), evaluate(theirs, inputs, mask), rounding(SIZES))


@pytest.mark.parametrize("shape", [(4, 5), (4, 7), (3, 6)])
def test_masks_of_wrong_shape_are_refused(shape, family, rng):
    layer = make_layer(family, SIZES, rng)
    x = np.zeros((SIZES.batch, SIZES.time, SIZES.inputs))
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
        layer(x, mask=np.ones(shape, bool))


@pytest.mark.parametrize(
    ("first", "family"),
    divided(
        itertools.product(["masking", "embedding"], FAMILIES),
        [("embedding", GRU)],
        each=1,
    ),
    ids=label,
)
def test_masks_that_come_with_the_input(first, family, rng):
    """The mask of Masking or Embedding reaches the layer, and leaves it for the next one."""
    tokens = rng.integers(0, 5, size=(SIZES.batch, SIZES.time))
    tokens[0] = 0
    models = []
    for rnn in family.both:
        if first == "masking":
            x, start = np.eye(5)[tokens] * (tokens > 0)[..., None], keras.layers.Masking()
        else:
            x, start = tokens, keras.layers.Embedding(5, 3, mask_zero=True)
        models.append(
            keras.Sequential([start, rnn(7, return_sequences=True), rnn(4, go_backwards=True)])
        )
        for layer in models[-1].layers[1:]:
            layer.supports_masking = True  # Keras 3.16 sets it to False in its own layers
        models[-1](x)
    random_weights(models[1], rng)
    copy_weights(models[1], models[0])
    got, wanted = (m.predict(x, verbose=0) for m in models)
    # Embedded, the mask is that of tokens > 0; by Masking that of inputs with any non-zero.
    assert_close(got, wanted, 2 * rounding(SIZES, "float32"))
    assert np.all(got[0] == 0), "the fully masked row"
    assert np.all(got[1:].any(axis=1))
