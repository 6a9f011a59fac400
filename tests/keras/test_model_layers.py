"""The walk over the layers of a model."""

import keras
from keras import layers

import tf_lstm_ops
from tf_lstm_ops.export.lite.layers import recurrent_layers
from tf_lstm_ops.keras import model_layers


class Outer(keras.Model):
    """Layers as attributes: Keras 3.8 does not find those of a functional model."""

    def __init__(self, inner, again):
        super().__init__()
        self.inner, self.again = inner, again


def test_paths_and_parents():
    shared = layers.GRU(2, name="shared")
    inner = keras.Sequential([keras.Input((None, 3)), shared], name="inner")
    x = keras.Input((4, 5, 3))
    y = layers.TimeDistributed(inner, name="each")(x)
    ours = tf_lstm_ops.keras.LSTM(2, name="lstm", return_sequences=True)
    y = layers.Bidirectional(ours, name="both")(y)
    main = keras.Model(x, layers.RNN(layers.LSTMCell(2), name="rnn")(y), name="main")
    model = Outer(main, [shared, layers.GRUCell(2, name="bare")])

    found = list(model_layers.recurrent(model))
    both = ["main/both/forward_lstm", "main/both/backward_lstm"]
    paths = ["main/each/inner/shared", *both, "main/rnn", "shared", "bare"]
    assert sorted(item.path for item in found) == sorted(paths)
    by_path = {item.path: item for item in found}
    assert by_path["main/each/inner/shared"].layer is by_path["shared"].layer is shared
    names = [parent.name for parent in by_path["main/each/inner/shared"].parents]
    assert names == [model.name, "main", "each", "inner"]

    lowered = {item.path: item.vectorized for item in recurrent_layers(model)}
    plain = dict.fromkeys([*both, "main/rnn", "shared"], False)
    assert lowered == {"main/each/inner/shared": True, **plain}


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
