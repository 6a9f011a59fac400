"""A Keras layer's weights, written by weights.LSTMWeights for MPSGraph's LSTM, predict the same."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops.raw_ops import MPSGraphLSTM
from tf_lstm_ops.weights import LSTMWeights

from .cases import BOOLEANS

BATCH, TIME, INPUTS, UNITS = 3, 5, 2, 4
# Two right evaluations differ by some dozen roundings of 1e-16 of outputs within [-1, 1].
ROUNDING = 1e-14


def layer_of(direction, use_peephole):
    options = {"return_sequences": True, "dtype": "float64", "bias_initializer": "glorot_normal"}
    options |= {"unit_forget_bias": False, "go_backwards": direction == "reverse"}
    if use_peephole:
        layer = tf_lstm_ops.keras.LSTM(UNITS, use_peephole=True, **options)
    else:
        layer = keras.layers.LSTM(UNITS, **options)
    if direction == "bidirectional":
        return keras.layers.Bidirectional(layer, dtype="float64")
    return layer


@pytest.mark.parametrize("forget_gate_last", BOOLEANS)
@pytest.mark.parametrize("use_peephole", BOOLEANS)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_predictions_and_gradients(rng, direction, use_peephole, forget_gate_last):
    layer = layer_of(direction, use_peephole)
    x = tf.constant(rng.normal(size=(BATCH, TIME, INPUTS)))
    layer.build(x.shape)
    arrays = [rng.normal(size=w.shape) for w in layer.get_weights()]
    for a in arrays[3::4] if use_peephole else []:
        a[2] = 0  # MPSGraph's output gate sees another state
    layer.set_weights(arrays)
    weights = LSTMWeights.from_keras(layer).to_mpsgraph(forget_gate_last=forget_gate_last)
    assert (weights.peephole is not None) == use_peephole
    with tf.GradientTape() as tape, tf.GradientTape() as ours:
        tape.watch(x)
        ours.watch(x)
        want = layer(x)
        output = MPSGraphLSTM(
            source=tf.transpose(x, [1, 0, 2]),
            **weights._asdict(),
            reverse=direction == "reverse",
            bidirectional=direction == "bidirectional",
            forget_gate_last=forget_gate_last,
        ).output
        if direction == "reverse":  # Keras leaves them in the order of the calculation
            output = tf.reverse(output, [0])
        got = tf.transpose(output, [1, 0, 2])
    np.testing.assert_allclose(got, want, rtol=0, atol=ROUNDING)
    upstream = rng.normal(size=want.shape)
    gradients = ours.gradient(got, x, upstream), tape.gradient(want, x, upstream)
    np.testing.assert_allclose(*gradients, rtol=0, atol=100 * ROUNDING)  # of size ten
    assert np.abs(want).max() > 0.05  # no comparison of zeros
