"""Options that cuDNN lacks keep Keras from its own cuDNN paths."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_lstm_ops
from tf_lstm_ops import op_definitions
from tf_lstm_ops.keras import cudnn_path

OWN_OPTIONS = [
    ("LSTM", {"use_peephole": True}),
    ("LSTM", {"cell_clip": 0.05}),
    ("LSTM", {"projection_size": 3}),
    ("LSTM", {"layer_normalization": True}),
    ("GRU", {"layer_normalization": True}),
]


@pytest.mark.parametrize(("kind", "options"), OWN_OPTIONS)
def test_cudnn_path_refuses_what_it_lacks(kind, options):
    with pytest.raises(ValueError, match="use_cudnn=True"):
        getattr(tf_lstm_ops.keras, kind)(5, use_cudnn=True, **options)


@pytest.mark.parametrize(("kind", "options"), OWN_OPTIONS)
def test_a_fused_bidirectional_of_keras_does_not_drop_own_options(kind, options, monkeypatch, rng):
    """Keras hands both layers' kernels to its backend, which TensorFlow's does not have yet."""
    layer = keras.layers.Bidirectional(getattr(tf_lstm_ops.keras, kind)(5, **options))
    x = rng.normal(size=(3, 4, 2)).astype("float32")
    want = layer(x).numpy()
    name = f"bidirectional_{kind.lower()}"
    calls: list[str] = []

    def fused(*_, **__):
        calls.append(name)
        raise NotImplementedError

    backend = keras.src.backend
    if not hasattr(backend, name):
        pytest.skip("this Keras has no fused path of Bidirectional")
    monkeypatch.setattr(backend, name, fused)
    np.testing.assert_array_equal(layer(x), want)
    assert not calls
    plain = keras.layers.Bidirectional(getattr(tf_lstm_ops.keras, kind)(5))
    plain(x)
    assert calls  # so the path would have been taken


LSTM_CALL = {"x": tf.zeros([1, 1, 1]), "go_backwards": True, "training": False}


@pytest.mark.parametrize(
    ("name", "covered", "lacked"),
    [
        ("cell_clip", 0.0, 0.5),
        ("proj_clip", 0.0, 0.5),
        ("activation", "tanh", "relu"),
        ("recurrent_activation", "sigmoid", "hard_sigmoid"),
        ("zoneout", 0.0, 0.1),  # an attribute of a future cell
        ("peephole", tf.zeros([0]), tf.zeros([3, 1])),
        ("projection", tf.zeros([0]), tf.zeros([1, 1])),
    ],
)
def test_cudnn_takes_no_argument_that_it_does_not_know(name, covered, lacked, monkeypatch):
    known = op_definitions.defaults("KerasLSTM")
    monkeypatch.setattr(op_definitions, "defaults", lambda _: {**known, "zoneout": 0.0})
    assert cudnn_path._covers("KerasLSTM", {**LSTM_CALL, name: covered})
    assert not cudnn_path._covers("KerasLSTM", {**LSTM_CALL, name: lacked})
