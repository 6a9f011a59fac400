"""Layers on a batch of no rows, and in graphs on sequences without steps."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from pairs import divided

import tf_lstm_ops
from empties import MODES, assert_ones, assert_zero, derivatives

TIME, UNITS, INPUTS = 3, 5, 2
LAYERS = {"LSTM": tf_lstm_ops.keras.LSTM, "GRU": tf_lstm_ops.keras.GRU}
EXTRAS = {"LSTM": {"use_peephole": True, "cell_clip": 2.0}, "GRU": {}}
OPTIONS = {
    "default": {},
    "dropout": {"dropout": 0.3, "recurrent_dropout": 0.3, "implementation": 1},
    "backwards": {"go_backwards": True, "return_sequences": True, "zero_output_for_mask": True},
}


def make(name: str, options: str = "default", batch: int = 0, time: int = TIME):
    """A layer, and x, the initial states and the weights, on which its results depend."""
    layer = LAYERS[name](UNITS, return_state=True, **EXTRAS[name], **OPTIONS[options])
    layer.build((None, None, INPUTS))
    assert layer.uses_fused_op
    rng = np.random.default_rng(0)
    shapes = [(batch, time, INPUTS), *[(batch, UNITS) for _ in layer._names_of_states]]
    values = [tf.constant(rng.normal(size=shape), tf.float32) for shape in shapes]
    return layer, [*values, *(tf.constant(w.value) for w in layer.trainable_variables)]


def on_values(layer, mask: tf.Tensor | None, training: bool):
    """The layer as a function of these values."""
    states = len(layer._names_of_states)

    def function(x, *values):
        pairs = [*zip(layer.trainable_variables, values[states:], strict=True)]
        with keras.StatelessScope(state_mapping=pairs):
            return layer(x, initial_state=list(values[:states]), mask=mask, training=training)

    return function


@pytest.mark.parametrize(
    ("name", "options", "training", "masked", "mode"),
    divided(
        itertools.product(LAYERS, OPTIONS, [False, True], [False, True], MODES),
        [
            ("LSTM", "dropout", True, True, "eager"),
            ("GRU", "backwards", False, True, "known sizes"),
            ("GRU", "default", True, False, "unknown sizes"),
        ],
        each=12,
    ),
)
def test_no_rows(name, options, training, masked, mode):
    layer, values = make(name, options)
    mask = tf.ones((0, TIME), tf.bool) if masked else None
    found = derivatives(on_values(layer, mask, training), values, mode)
    output, *states = found.results
    assert_zero(output, (0, TIME, UNITS) if layer.return_sequences else (0, UNITS))
    for state in states:
        assert_zero(state, (0, UNITS))
    for gradients in (found.first, found.second):
        for got, like in zip(gradients, values, strict=True):
            assert_zero(got, like.shape)


@pytest.mark.parametrize(
    ("name", "options", "masked"),
    divided(
        itertools.product(LAYERS, ["default", "backwards"], [False, True]),
        [("GRU", "backwards", True)],
        each=3,
    ),
)
def test_no_steps(name, options, masked):
    """The states pass unchanged, and so do their gradients. The last output is zero."""
    layer, values = make(name, options, batch=2, time=0)
    mask = tf.ones((2, 0), tf.bool) if masked else None
    found = derivatives(on_values(layer, mask, training=True), values, "unknown sizes")
    states = values[1 : 1 + len(layer._names_of_states)]
    assert_zero(found.results[0], (2, 0, UNITS) if layer.return_sequences else (2, UNITS))
    for k, state in enumerate(states, start=1):
        np.testing.assert_array_equal(found.results[k], state)
        assert_ones(found.first[k], state.shape)
    for k in (0, *range(1 + len(states), len(values))):
        assert_zero(found.first[k], values[k].shape)
    for got, like in zip(found.second, values, strict=True):
        assert_zero(got, like.shape)


def test_no_steps_with_dropout_in_a_graph():
    """In training Keras reads the first step to draw the mask of dropout."""
    layer, _ = make("LSTM", "dropout", batch=2, time=0)
    x = tf.zeros((2, 0, INPUTS))
    signature = [tf.TensorSpec((None, None, INPUTS))]
    inference, training = (
        tf.function(lambda x, mode=mode: layer(x, training=mode), input_signature=signature)
        for mode in (False, True)
    )
    assert_zero(inference(x)[0].numpy(), (2, UNITS))
    assert_zero(layer(x, training=True)[0].numpy(), (2, UNITS))
    with pytest.raises(tf.errors.InvalidArgumentError, match="slice index 0"):
        training(x)


@pytest.mark.parametrize("name", ["LSTM", pytest.param("GRU", marks=pytest.mark.full)])
def test_stock_in_a_graph(name):
    """Stock's layers take no rows in a graph. (Not all in eager mode.)"""
    x = tf.zeros((0, TIME, INPUTS))
    shapes = []
    for module in (tf_lstm_ops.keras, keras.layers):
        layer = keras.layers.Bidirectional(
            getattr(module, name)(UNITS, return_state=True, return_sequences=True)
        )
        call = tf.function(layer, input_signature=[tf.TensorSpec((None, None, INPUTS))])
        shapes.append([tuple(result.shape) for result in call(x)])
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", LAYERS)
def test_kept_weights_are_those_of_the_variable(name):
    """The first call, on no rows, packs the weights that the next calls use."""
    layer, _ = make(name)
    other = LAYERS[name].from_config(layer.get_config())
    other.build((None, None, INPUTS))
    other.set_weights(layer.get_weights())
    rows = tf.random.stateless_normal((4, TIME, INPUTS), (1, 2))
    function = tf.function(layer, input_signature=[tf.TensorSpec((None, TIME, INPUTS))])
    assert function(rows[:0])[0].shape == (0, UNITS)
    for got, wanted in zip(function(rows), other(rows), strict=True):
        np.testing.assert_array_equal(got, wanted)
