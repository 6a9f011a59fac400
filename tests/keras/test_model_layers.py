"""The walk over the layers of a model."""

import keras
from keras import layers

import tf_lstm_ops
from tf_lstm_ops.export.lite.layers import recurrent_layers
from tf_lstm_ops.keras import model_layers


def test_paths_and_parents():
    shared = layers.GRU(2, name="shared")
    inner = keras.Sequential([keras.Input((None, 3)), shared], name="inner")
    x = keras.Input((4, 5, 3))
    y = layers.TimeDistributed(inner, name="each")(x)
    ours = tf_lstm_ops.keras.LSTM(2, name="lstm", return_sequences=True)
    y = layers.Bidirectional(ours, name="both")(y)
    model = keras.Model(x, layers.RNN(layers.LSTMCell(2), name="rnn")(y))
    model.again = [shared, layers.GRUCell(2, name="bare")]

    found = list(model_layers.recurrent(model))
    both = ["both/forward_lstm", "both/backward_lstm"]
    paths = ["each/inner/shared", *both, "rnn", "shared", "bare"]
    assert sorted(item.path for item in found) == sorted(paths)
    by_path = {item.path: item for item in found}
    assert by_path["each/inner/shared"].layer is by_path["shared"].layer is shared
    names = [parent.name for parent in by_path["each/inner/shared"].parents]
    assert names == [model.name, "each", "inner"]

    lowered = {item.path: item.vectorized for item in recurrent_layers(model)}
    vectorized = {"each/inner/shared": True, **dict.fromkeys([*both, "rnn", "shared"], False)}
    assert lowered == vectorized


def test_what_is_wanted_is_not_looked_into():
    both = layers.Bidirectional(layers.LSTM(2))
    model = keras.Sequential([both])
    assert [item.layer for item in model_layers.located(model, lambda layer: layer is both)] == [
        both
    ]
    assert [item.layer for item in model_layers.recurrent(both)] == [
        both.forward_layer,
        both.backward_layer,
    ]
