"""What a call of a layer adds to a graph, and what eager calls share."""

import collections

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.keras import LSTM, op_inputs

SHAPE = (1, 4, 5)  # one row: states of shape [1, H] are not broadcast
UNITS = 3


def traced(layer, states, x_shape=SHAPE):
    """The graph of the layer's own part of a call, without what Keras adds."""

    def inner_loop(x, *states):
        return layer.inner_loop(x, list(states), None)

    specs = [tf.TensorSpec(x_shape), *(tf.TensorSpec([1, UNITS]) for _ in states)]
    return tf.function(inner_loop, autograph=False).get_concrete_function(*specs)


def types_of(function):
    return collections.Counter(op.type for op in function.graph.get_operations())


@pytest.mark.parametrize("return_sequences", [False, True])
def test_no_op_without_a_reader(family, return_sequences):
    """The op, its inputs and the last output, even after an eager call made absent inputs."""
    layer = family.ours(UNITS, return_sequences=return_sequences)
    layer(np.zeros(SHAPE, "float32"))
    function = traced(layer, family.states)
    assert [x.dtype for x in function.captured_inputs] == [tf.resource] * 3
    found = types_of(function)
    for kind in ("Placeholder", "ReadVariableOp", "Const", "Identity", "NoOp"):
        found.pop(kind, None)
    last = {} if return_sequences else {"Squeeze": 1}
    assert found == {f"TfLstmOps>Keras{family.name}": 1, **last}


def test_states_of_one_row_are_broadcast_to_unknown_rows(family):
    layer = family.ours(UNITS)
    layer.build(SHAPE)
    function = traced(layer, family.states, x_shape=(None, *SHAPE[1:]))
    assert types_of(function)["BroadcastTo"] == len(family.states)
    states = [tf.fill([1, UNITS], 0.5) for _ in family.states]
    last, _, finals = function(tf.ones((2, *SHAPE[1:])), *states)
    assert last.shape == finals[0].shape == (2, UNITS)
    np.testing.assert_array_equal(last[0], last[1])


def test_eager_calls_share_absent_inputs():
    absent = op_inputs.optional(None, tf.float32)
    assert absent is op_inputs.optional(None, tf.float32)
    assert absent.shape == [0] and absent.dtype == tf.float32
    assert op_inputs.optional(None, tf.bool).dtype == tf.bool
    with tf.Graph().as_default() as graph:
        assert op_inputs.optional(None, tf.float32).graph is graph


class _Unhashable:
    __hash__ = None

    def __call__(self, x):
        return x


def test_a_replaced_activation_counts(rng):
    """Names are kept for each function, which need not be hashable, not for each layer."""
    x = rng.normal(size=SHAPE).astype("float32")
    layer, expected = LSTM(UNITS), LSTM(UNITS, activation="relu")
    layer(x)
    layer.cell.activation = _Unhashable()
    assert "activation is" in layer.fallback_reason
    layer.cell.activation = keras.activations.relu
    assert layer.fallback_reason is None
    expected.build(SHAPE)
    expected.set_weights(layer.get_weights())
    np.testing.assert_array_equal(layer(x), expected(x))


def test_gradients_reach_the_weights_that_eager_ops_read(family, rng):
    """The same bits as in a graph, where tensors of the weights are the inputs."""
    x = tf.constant(rng.normal(size=(2, *SHAPE[1:])), tf.float32)
    layer = family.ours(UNITS)
    layer(x)

    def gradients():
        with tf.GradientTape() as tape:
            result = layer(x, training=True)
        return tape.gradient(result, layer.trainable_variables)

    for eager, graph in zip(gradients(), tf.function(gradients)(), strict=True):
        assert np.any(eager)
        np.testing.assert_array_equal(eager, graph)
