"""The test models of RTNeural give the outputs that RTNeural recorded of TensorFlow."""

import keras
import numpy as np
import pytest

import tf_lstm_ops
from session import rtneural_models
from session.rtneural_models import NAMES, Model
from tf_lstm_ops.inference import Session

# Outputs are below 1. Two evaluations in float32 differ by some roundings of 6e-8 in each step,
# which the recurrence carries on.
BOUND = 1e-5
RECURRENT = {"lstm": tf_lstm_ops.keras.LSTM, "gru": tf_lstm_ops.keras.GRU}


def keras_model(found: Model) -> keras.Model:
    layers = [keras.Input((None, found.inputs))]
    for layer in found.layers:
        if layer.kind == "dense":
            layers.append(keras.layers.Dense(layer.units, activation=layer.activation))
        else:
            make = RECURRENT[layer.kind]
            layers.append(make(layer.units, activation=layer.activation, return_sequences=True))
    model = keras.Sequential(layers)
    model.set_weights([array for layer in found.layers for array in layer.weights])
    return model


@pytest.fixture(params=NAMES)
def found(request: pytest.FixtureRequest) -> Model:
    return rtneural_models.read(request.param)


def check(y: object, found: Model) -> None:
    assert np.shape(y) == found.y.shape
    np.testing.assert_allclose(y, found.y, rtol=0, atol=BOUND)


def test_there_are_models_of_both_cells() -> None:
    assert NAMES == ["gru", "gru_1d", "lstm", "lstm_1d"]
    for name in NAMES:
        model = rtneural_models.read(name)
        assert name.partition("_")[0] in [layer.kind for layer in model.layers]
        assert model.x.shape == model.y.shape == (1, 100, 1)
        # A model that ignores its input or its state would not pass by chance.
        assert np.ptp(model.y) > 100 * BOUND


def test_keras_model(found: Model) -> None:
    check(keras_model(found)(found.x), found)


def test_session(found: Model) -> None:
    check(Session(keras_model(found))(found.x), found)


@pytest.mark.parametrize("steps", [1, 7, 100])
def test_stream(found: Model, steps: int) -> None:
    """In calls of several steps, and of one step in either form."""
    stream = Session(keras_model(found)).stream()
    blocks = [found.x[:, k : k + steps] for k in range(0, found.x.shape[1], steps)]
    check(np.concatenate([stream(block) for block in blocks], axis=1), found)


def test_stream_of_single_steps(found: Model) -> None:
    stream = Session(keras_model(found)).stream()
    check(np.stack([stream(found.x[:, t]) for t in range(found.x.shape[1])], axis=1), found)


def test_reader_names_the_layer_that_it_does_not_know() -> None:
    fields = {"type": "conv1d", "shape": [None, None, 8], "activation": "", "weights": []}
    with pytest.raises(ValueError, match=r"layer 2: type must be .* but is 'conv1d'"):
        rtneural_models._layer("model.json: layer 2", fields, 1)


def test_reader_checks_shapes() -> None:
    weights = [[[0.0] * 8], [0.0] * 7]
    fields = {"type": "dense", "shape": [None, None, 8], "activation": "", "weights": weights}
    with pytest.raises(ValueError, match=r"layer 0: weights .* \(8,\)\] but have .*\(7,\)"):
        rtneural_models._layer("layer 0", fields, 1)
