"""keras.SimpleRNN: what only this layer has. The other tests of this folder have it as a family."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import (
    SIMPLE_RNN,
    Sizes,
    assert_close,
    assert_same,
    evaluate,
    make_layer,
    make_mask,
    make_pair,
    random_inputs,
    rounding,
)

import tf_lstm_ops
from oracle.derivatives import central_difference, unit_direction
from tf_lstm_ops.keras import Bidirectional, SimpleRNN, convert_model

SIZES = Sizes(batch=3, time=4, inputs=4, units=17)
FULL = {"return_sequences": True, "return_state": True}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("mask", ["none", "holes", "one_row_false"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_bias": False, "go_backwards": True},
        {"return_sequences": False},
        {"zero_output_for_mask": True},
        {"dropout": 0.3, "recurrent_dropout": 0.5, "seed": 7},
    ],
    ids=str,
)
def test_relu_equals_stock(options, mask, rng):
    options = {**FULL, "dtype": "float64", "activation": "relu", **options}
    ours, theirs = make_pair(SIMPLE_RNN, SIZES, rng, **options)
    assert ours.uses_fused_op
    mask = make_mask(mask, SIZES.batch, SIZES.time, rng)
    inputs = random_inputs(SIZES, rng, SIMPLE_RNN)
    got, want = (evaluate(layer, inputs, mask, training=True) for layer in (ours, theirs))
    # Unlike with tanh, each step multiplies an error by the norm of the recurrent kernel, below 8,
    # and dropout by up to 2. Bounds are relative to the largest element, which grows as well.
    assert_same(got, want, 16 * rounding(SIZES))


def test_relu_under_xla(rng):
    layer = make_layer(SIMPLE_RNN, SIZES, rng, **FULL, activation="relu")
    inputs = [tf.constant(a) for a in random_inputs(SIZES, rng, SIMPLE_RNN)]

    def call(x, h):
        with tf.GradientTape() as tape:
            tape.watch([x, h])
            loss = tf.add_n([tf.reduce_sum(tf.sin(r)) for r in layer(x, initial_state=[h])])
        return tape.gradient(loss, [x, h])

    compiled = tf.function(call, jit_compile=True, autograph=False)(*inputs)
    for got, want in zip(compiled, call(*inputs), strict=True):
        assert_close(got.numpy(), want.numpy(), 16 * rounding(SIZES))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_second_order(activation, rng):
    """The gradient of a squared gradient, against central differences."""
    layer = make_layer(SIMPLE_RNN, Sizes(2, 3, 2, 4), rng, **FULL, activation=activation)
    inputs = random_inputs(Sizes(2, 3, 2, 4), rng, SIMPLE_RNN)

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


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_bidirectional(activation, rng):
    x = rng.normal(size=(3, 5, 4))
    layers = [
        module.Bidirectional(
            module.SimpleRNN(6, activation, return_sequences=True, dtype="float64")
        )
        for module in (keras.layers,)
    ]
    theirs = keras.Sequential([keras.Input((None, 4), dtype="float64"), *layers])
    for weight in theirs.weights:
        weight.assign(rng.normal(0, 0.3, weight.shape))
    ours = convert_model(theirs)
    assert type(ours.layers[0]) is Bidirectional
    assert ours.layers[0].uses_fused_op
    np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-12)  # some dozen roundings


def test_files_and_both_directions_of_convert_model(rng, tmp_path):
    x = rng.normal(size=(3, 5, 4)).astype("float32")
    cell = keras.layers.SimpleRNNCell(3, "relu", name="mine")
    model = keras.Sequential(
        [
            keras.Input((None, 4)),
            keras.layers.SimpleRNN(4, return_sequences=True, dropout=0.2, seed=1),
            keras.layers.RNN(cell),
        ]
    )
    ours = convert_model(model)
    assert all(layer.uses_fused_op for layer in ours.layers)
    ours.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert [type(a) for a in loaded.layers] == [type(a) for a in ours.layers]
    np.testing.assert_array_equal(loaded(x), ours(x))
    np.testing.assert_allclose(ours(x), model(x), atol=1e-5)  # float32, sums of few terms
    back = convert_model(loaded, to="stock")
    assert back.get_config() == model.get_config()
    np.testing.assert_array_equal(back(x), model(x))


def test_activity_regularizer(rng):
    """Keras' SimpleRNN ignores the argument, so no stock layer replaces one that has it."""
    x = rng.normal(size=(2, 3, 4)).astype("float32")
    ours, theirs = (
        m.SimpleRNN(4, activity_regularizer="l2") for m in (tf_lstm_ops.keras, keras.layers)
    )
    ours(x), theirs(x)
    assert (len(ours.losses), len(theirs.losses)) == (1, 0)
    model = keras.Sequential([keras.Input((3, 4)), ours])
    with pytest.raises(ValueError, match=r"keras\.layers\.SimpleRNN has no activity_regularizer"):
        convert_model(model, to="stock")


def test_another_cell_is_a_reason(rng):
    layer = SimpleRNN(4)
    layer.cell = keras.layers.GRUCell(4)
    assert layer.fallback_reason == (
        "its cell is a keras.layers.GRUCell, not a keras.layers.SimpleRNNCell"
    )
