"""keras.GRU with reset_after=False: the fused op against stock Keras, the oracle, differences."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    GRU,
    MASKS,
    Sizes,
    assert_close,
    assert_same,
    evaluate,
    evaluate_oracle,
    make_layer,
    make_mask,
    make_pair,
    random_inputs,
    rounding,
    to_numpy,
)

from oracle.derivatives import central_difference, unit_direction
from tf_lstm_ops import composite, op_definitions

# Units below, at and across the widths of vector registers. The backward pass divides the batch of
# the last but one into slices. The last one has several threads and more than a chain of products.
SIZES = [
    Sizes(1, 1, 1, 1),
    Sizes(3, 6, 4, 7),
    Sizes(5, 4, 1, 17),
    Sizes(26, 5, 3, 20),
    Sizes(7, 3, 5, 130),
]
FULL = {"return_sequences": True, "return_state": True, "reset_after": False}


@pytest.mark.sampled(12)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("go_backwards", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_bias": False},
        {"return_sequences": False},
        {"zero_output_for_mask": True},
        {"stateful": True},
    ],
    ids=str,
)
def test_equals_stock(options, go_backwards, mask, sizes, rng):
    options = {**FULL, "dtype": "float64", "go_backwards": go_backwards, **options}
    ours, theirs = make_pair(GRU, sizes, rng, **options)
    assert ours.uses_fused_op
    mask = make_mask(mask, sizes.batch, sizes.time, rng)
    for given in (GRU, None):  # with and without an initial state
        inputs = random_inputs(sizes, rng, given)
        got, want = (evaluate(layer, inputs, mask) for layer in (ours, theirs))
        assert_same(got, want, 2 * rounding(sizes))


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_float32_equals_the_oracle(sizes, rng):
    layer = make_layer(GRU, sizes, rng, **FULL, dtype="float32")
    inputs = [a.astype("float32") for a in random_inputs(sizes, rng, GRU)]
    mask = make_mask("holes", sizes.batch, sizes.time, rng)
    bound = 2 * rounding(sizes, "float32")
    assert_same(evaluate(layer, inputs, mask), evaluate_oracle(layer, inputs, mask), bound)


@pytest.mark.parametrize("implementation", [1, 2])
@pytest.mark.parametrize("mask", ["none", "holes"])
@pytest.mark.parametrize("sizes", [SIZES[1], SIZES[3]], ids=str)
def test_dropout_is_stocks(sizes, mask, implementation, rng):
    """Each gate's own multipliers of h; that of the candidate before the reset gate."""
    ours, theirs = make_pair(
        GRU,
        sizes,
        rng,
        stock={"use_cudnn": False},
        dropout=0.3,
        recurrent_dropout=0.5,
        implementation=implementation,
        seed=7,
        dtype="float64",
        **FULL,
    )
    mask = make_mask(mask, sizes.batch, sizes.time, rng)
    inputs = random_inputs(sizes, rng, GRU)
    got, want = (evaluate(layer, inputs, mask, training=True) for layer in (ours, theirs))
    # Dropped values leave fewer terms in a sum; the others are scaled by up to 2.
    assert_same(got, want, 4 * rounding(sizes))
    assert np.abs(got.results[0] - evaluate(ours, inputs, mask).results[0]).max() > 1e-3


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_16_bit_types(dtype, rng):
    """Against float64 with the same weights: the sums are float, h is rounded in each step."""
    sizes = SIZES[2]
    # Keras' initializer has no bfloat16.
    layer = make_layer(GRU, sizes, rng, **FULL, dtype=dtype, recurrent_initializer="zeros")
    exact = make_layer(GRU, sizes, rng, **FULL)
    for a, b in zip(exact.trainable_weights, layer.trainable_weights, strict=True):
        a.assign(tf.cast(b.value, "float64"))
    inputs = [to_numpy(tf.cast(a, dtype)) for a in random_inputs(sizes, rng, GRU)]
    got, want = evaluate(layer, inputs), evaluate(exact, inputs)
    # A few roundings of each result, each of half a unit in the last place.
    unit = 2.0**-11 if dtype == "float16" else 2.0**-8
    assert_same(got, want, 2 * sizes.time * unit)


@pytest.mark.parametrize("training", [pytest.param(False, marks=pytest.mark.full), True])
def test_xla(training, rng):
    """XLA compiles the composite."""
    sizes = SIZES[1]
    layer = make_layer(GRU, sizes, rng, **FULL)
    inputs = [tf.constant(a) for a in random_inputs(sizes, rng, GRU)]
    mask = tf.constant(make_mask("holes", sizes.batch, sizes.time, rng))

    def call(x, h):
        with tf.GradientTape() as tape:
            tape.watch([x, h])
            results = layer(x, initial_state=[h], mask=mask, training=training)
            loss = tf.add_n([tf.reduce_sum(tf.sin(r)) for r in results])
        weights = [w.value for w in layer.trainable_weights]
        return [*results, *tape.gradient(loss, [x, h, *weights])]

    compiled = tf.function(call, jit_compile=True, autograph=False)(*inputs)
    for got, want in zip(compiled, call(*inputs), strict=True):
        assert_close(got.numpy(), want.numpy(), rounding(sizes))


def test_second_order(rng):
    """The gradient of a squared gradient, against central differences."""
    sizes = Sizes(2, 3, 2, 4)
    layer = make_layer(GRU, sizes, rng, **FULL)
    inputs = random_inputs(sizes, rng, GRU)

    def penalty(arguments):
        x, h = map(tf.constant, arguments)
        with tf.GradientTape() as outer:
            outer.watch([x, h])
            with tf.GradientTape() as inner:
                inner.watch([x, h])
                loss = tf.add_n([tf.reduce_sum(tf.sin(r)) for r in layer(x, initial_state=[h])])
            value = tf.add_n([tf.reduce_sum(g * g) for g in inner.gradient(loss, [x, h])])
        return value, outer.gradient(value, [x, h])

    gradients = penalty(inputs)[1]
    direction = unit_direction(rng, inputs)
    got = sum(np.sum(g * d) for g, d in zip(gradients, direction, strict=True))
    want = central_difference(lambda a: penalty(a)[0].numpy(), inputs, direction)
    # A penalty of size ten, whose differences are right to 1e-12 of it.
    np.testing.assert_allclose(got, want, rtol=1e-9)


@pytest.mark.parametrize(
    ("present", "sizes"), itertools.product([(), ("bias",)], SIZES[1:3]), ids=str
)
def test_composite_equals_the_op(present, sizes, rng):
    """With each gate's dropout of x and h, and an absent bias."""
    batch, time, inputs, units = sizes
    shapes = {
        "x": (batch, time, inputs),
        "initial_h": (batch, units),
        "kernel": (inputs, 3 * units),
        "recurrent_kernel": (units, 3 * units),
        "bias": (3 * units,) if present else (0,),
        "input_dropout": (3, batch, inputs),
        "recurrent_dropout": (3, batch, units),
    }
    values = {name: tf.constant(rng.normal(size=shape)) for name, shape in shapes.items()}
    values["mask"] = tf.constant(make_mask("holes", batch, time, rng))
    op = op_definitions.function("KerasResetBeforeGRU")
    fused = op(**values)
    plain = composite.keras.LAYERS["KerasResetBeforeGRU"](
        **values, go_backwards=False, zero_output_for_mask=False, return_sequences=True
    )
    for got, want in zip(fused[:2], plain, strict=True):
        assert_close(got.numpy(), want.numpy(), 4 * rounding(sizes))


def test_a_bias_of_two_rows_is_refused(rng):
    layer = make_layer(GRU, SIZES[1], rng, **FULL)
    x, h = (tf.constant(a) for a in random_inputs(SIZES[1], rng, GRU))
    weights = [w.value for w in layer.trainable_weights[:2]]
    absent = tf.zeros([0], tf.float64)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="bias must be rank 1"):
        op_definitions.function("KerasResetBeforeGRU")(
            x=x,
            mask=tf.zeros([0], tf.bool),
            initial_h=h,
            kernel=weights[0],
            recurrent_kernel=weights[1],
            bias=tf.zeros([2, 21], tf.float64),
            input_dropout=absent,
            recurrent_dropout=absent,
        )
