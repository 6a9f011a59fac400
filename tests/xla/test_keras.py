"""The Keras layers where XLA compiles: beside their fused ops, outside."""

import itertools
import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops

from .comparison import SECOND_ORDER, assert_agree, compiled, second_derivatives

BATCH, TIME, INPUTS, UNITS = 3, 4, 2, 5
EXTRAS = {"LSTM": {"use_peephole": True, "cell_clip": 0.25}, "GRU": {}}
COMMON = {"dtype": "float64", "return_sequences": True, "return_state": True}
OPTIONS = {
    "default": {},
    "return_last": {"return_sequences": False, "use_bias": False},
    "backwards": {"go_backwards": True, "zero_output_for_mask": True},
    "dropout": {"dropout": 0.3, "recurrent_dropout": 0.3},
    "half": {"dtype": "float16"},
    "bfloat16": {"dtype": "bfloat16", "recurrent_initializer": "glorot_uniform"},
    "mixed": {"dtype": "mixed_float16"},
    "float32": {"dtype": "float32"},
}
MARKS = {
    ("LSTM", "backwards", True): [],
    ("GRU", "return_last", True): pytest.mark.full,
    ("GRU", "dropout", False): [],
}
CASES = [
    pytest.param(*case, marks=MARKS.get(case, pytest.mark.slow))
    for case in itertools.product(EXTRAS, OPTIONS, [False, True])
]
MASK = [[True, False, True, True], [False, True, True, False], [False] * TIME]


def make_layer(name, rng, **options):
    layer = getattr(tf_lstm_ops.keras, name)(UNITS, **{**COMMON, **EXTRAS[name], **options})
    layer.build((BATCH, TIME, INPUTS))
    for weight in layer.trainable_weights:
        weight.assign(rng.normal(0, 0.5, weight.shape))
    assert layer.uses_fused_op
    return layer


def random_arguments(layer, rng):
    """x and the initial states."""
    shapes = [(BATCH, TIME, INPUTS), *[(BATCH, UNITS) for _ in layer._names_of_states]]
    return [tf.constant(rng.normal(size=shape), layer.compute_dtype) for shape in shapes]


def fix_dropout(layer, rng):
    """The same multipliers at every call: in XLA TensorFlow draws other elements from a seed."""
    gates = layer.cell.kernel.shape[1] // UNITS

    def multipliers(inputs):
        shape = (gates, BATCH, inputs)
        return tf.unstack(tf.constant(rng.integers(2, size=shape) * 2.0, layer.compute_dtype))

    of_x, of_h = multipliers(INPUTS), multipliers(UNITS)
    layer.cell.get_dropout_mask = lambda _: of_x
    layer.cell.get_recurrent_dropout_mask = lambda _: of_h


@pytest.mark.parametrize(("name", "options", "masked"), CASES)
def test_values_and_gradients(rng, name, options, masked):
    """Of all results, by the input, the initial state and all weights; in training."""
    layer = make_layer(name, rng, **OPTIONS[options])
    fix_dropout(layer, rng)
    x, *states = random_arguments(layer, rng)
    mask = tf.constant(MASK) if masked else None
    if masked:  # what stands there is not read
        x = tf.where(mask[:, :, tf.newaxis], x, np.nan)

    def function(x, *states):
        with tf.GradientTape() as tape:
            tape.watch([x, *states])
            results = layer(x, initial_state=list(states), mask=mask, training=True)
            loss = tf.add_n([tf.reduce_sum(r * r) for r in results])
        return results, tape.gradient(
            loss, [x, *states, *(w.value for w in layer.trainable_weights)]
        )

    got, want = compiled(function, x, *states), function(x, *states)
    assert_agree(got, want, layer.compute_dtype)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXTRAS)
def test_second_derivatives(rng, name):
    layer = make_layer(name, rng, return_state=False)
    x, *_ = random_arguments(layer, rng)

    def function(x):
        return second_derivatives(layer, x)

    assert_agree(compiled(function, x), function(x), factor=SECOND_ORDER)


def make_model():
    """Padding, both directions, both layers."""
    keras.utils.set_random_seed(1)
    dtype = "float64"
    lstm = tf_lstm_ops.keras.LSTM(UNITS, return_sequences=True, **EXTRAS["LSTM"], dtype=dtype)
    return keras.Sequential(
        [
            keras.Input((None, INPUTS), dtype=dtype),
            keras.layers.Masking(dtype=dtype),
            keras.layers.Bidirectional(lstm, dtype=dtype),
            tf_lstm_ops.keras.GRU(1, dtype=dtype),
        ]
    )


@pytest.mark.full
def test_a_model_trains_to_the_same_weights(rng):
    """And Keras does not warn that a layer cannot be compiled."""
    x, y = rng.normal(size=(8, TIME, INPUTS)), rng.normal(size=(8, 1))
    x[:4, 2:] = 0
    trained = []
    for jit_compile in True, False:
        model = make_model()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=jit_compile)
        assert model.jit_compile is jit_compile
        start = model.get_weights()
        model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
        trained.append(model.get_weights())
        assert all(np.any(a != b) for a, b in zip(start, trained[-1], strict=True))
    for got, want in zip(*trained, strict=True):
        # Four steps of training carry on the roundings of float64.
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-12)


def test_layers_say_that_xla_can_compile_them():
    for name in EXTRAS:
        layer = getattr(tf_lstm_ops.keras, name)(UNITS)
        assert layer.uses_fused_op and layer.supports_jit
        layer.supports_jit = False  # what Keras' own layers say where they may run cuDNN
        assert layer.supports_jit
