"""The test models of RTNeural give the outputs that RTNeural recorded of TensorFlow."""

from typing import Any

import keras
import numpy as np
import pytest
from keras import layers as stock

import tf_lstm_ops
from session import rtneural_models
from session.rtneural_models import NAMES, Model
from tf_lstm_ops.inference import Session

# Outputs are below 1. Two evaluations in float32 differ by some roundings of 6e-8 in each step,
# which the recurrence carries on.
BOUND = 1e-5
RECURRENT = {"lstm": tf_lstm_ops.keras.LSTM, "gru": tf_lstm_ops.keras.GRU}


def keras_layer(fields: dict[str, Any]) -> keras.Layer:
    kind, units, count = fields["type"], fields["shape"][-1], len(fields["weights"])
    function = fields["activation"] or "linear"
    if kind in RECURRENT:
        return RECURRENT[kind](units, activation=function, return_sequences=True)
    if kind == "conv1d":
        options = {"dilation_rate": fields["dilation"], "groups": fields["groups"]}
        return stock.Conv1D(
            units, fields["kernel_size"], 1, "causal", activation=function, **options
        )
    if kind == "batchnorm":
        has_scale = {"center": count == 4, "scale": count == 4}
        return stock.BatchNormalization(epsilon=fields["epsilon"], **has_scale)
    if kind == "prelu":
        return stock.PReLU(shared_axes=[1] if len(fields["weights"][0][0]) > 1 else [1, 2])
    if kind == "activation":
        return stock.Activation(function)
    return stock.Dense(units, function, use_bias=count == 2)


def keras_model(found: Model) -> keras.Model:
    made = [keras_layer(fields) for fields in found.layers]
    model = keras.Sequential([keras.Input((None, found.inputs)), *made])
    for layer, fields in zip(made, found.layers, strict=True):
        wanted = layer.get_weights()
        given = [np.array(array, np.float32) for array in fields["weights"]]
        layer.set_weights([a.reshape(b.shape) for a, b in zip(given, wanted, strict=True)])
    return model


@pytest.fixture(params=NAMES)
def found(request: pytest.FixtureRequest) -> Model:
    return rtneural_models.read(request.param)


def check(y: object, found: Model) -> None:
    assert np.shape(y) == found.y.shape
    np.testing.assert_allclose(y, found.y, rtol=0, atol=BOUND)


def test_there_are_models_of_every_kind_of_layer() -> None:
    assert NAMES == ["conv", "dense", "gru", "gru_1d", "lstm", "lstm_1d"]
    models = [rtneural_models.read(name) for name in NAMES]
    for model in models:
        assert model.x.shape == model.y.shape == (1, 100, 1)
        # A model that ignores its input or its state would not pass by chance.
        assert np.ptp(model.y) > 100 * BOUND
    kinds = {fields["type"] for model in models for fields in model.layers}
    assert kinds == {
        *("dense", "time-distributed-dense", "conv1d", "batchnorm", "prelu", "activation"),
        *("lstm", "gru"),
    }


def test_keras_model(found: Model) -> None:
    check(keras_model(found)(found.x), found)


def test_session(found: Model) -> None:
    """From the file, and from the Keras model with the same layers."""
    session = Session.from_rtneural(found.path)
    check(session(found.x), found)
    other = Session(keras_model(found))
    assert session._opened.content.tobytes() == other._opened.content.tobytes()


@pytest.mark.parametrize("steps", [1, 7, 100])
def test_stream(found: Model, steps: int) -> None:
    """In calls of several steps, and of one step in either form."""
    stream = Session.from_rtneural(found.path).stream()
    blocks = [found.x[:, k : k + steps] for k in range(0, found.x.shape[1], steps)]
    check(np.concatenate([stream(block) for block in blocks], axis=1), found)


def test_stream_of_single_steps(found: Model) -> None:
    stream = Session.from_rtneural(found.path).stream()
    check(np.stack([stream(found.x[:, t]) for t in range(found.x.shape[1])], axis=1), found)
