"""Weights are refused from layers of another kind."""

import keras
import pytest

from tf_lstm_ops.weights import GRUWeights, LSTMWeights

from .formats import INPUTS, UNITS

OTHER_LAYERS = {
    "LSTM": lambda: keras.layers.LSTM(UNITS),
    "SimpleRNN": lambda: keras.layers.SimpleRNN(UNITS),
    "RNN of an LSTMCell": lambda: keras.layers.RNN(keras.layers.LSTMCell(UNITS)),
    "Bidirectional LSTM": lambda: keras.layers.Bidirectional(keras.layers.LSTM(UNITS)),
}


@pytest.mark.parametrize("kind", OTHER_LAYERS)
def test_a_gru_does_not_come_from_other_layers(kind):
    layer = OTHER_LAYERS[kind]()
    layer.build((None, None, INPUTS))
    for source in (layer, [layer]):
        with pytest.raises(ValueError, match=r"must be a GRU but has layers of class "):
            GRUWeights.from_keras(source)


@pytest.mark.parametrize("kind", ["GRU", "SimpleRNN"])
def test_an_lstm_does_not_come_from_other_layers(kind):
    layer = getattr(keras.layers, kind)(UNITS)
    layer.build((None, None, INPUTS))
    with pytest.raises(ValueError, match="must"):
        LSTMWeights.from_keras(layer)
