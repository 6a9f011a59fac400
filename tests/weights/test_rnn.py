"""RNNWeights: the activation function, which few formats say."""

import keras
import numpy as np
import pytest

import tf_lstm_ops.keras
from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

from .formats import INPUTS, ROUNDING, UNITS, Shape, assert_equal, random_weights
from .runs import keras_layers, run_cudnn, run_keras, set_weights

BATCH, TIME = 3, 5
RELU = Shape("rnn_relu", layers=2, directions=2)


def built(layer: keras.Layer) -> keras.Layer:
    layer.build((None, None, INPUTS))
    return layer


def cudnn_sizes(shape: Shape) -> dict[str, int]:
    return {
        "input_size": shape.inputs,
        "units": shape.units,
        "num_layers": shape.layers,
        "directions": shape.directions,
    }


def relu_weights(rng: np.random.Generator) -> RNNWeights:
    weights = random_weights(RELU._replace(kind="rnn_tanh"), rng)
    return RNNWeights(weights.cells, weights.directions, activation="relu")


def test_relu_through_the_formats(rng, tmp_path):
    weights = relu_weights(rng)
    params = weights.to_cudnn()
    assert_equal(RNNWeights.from_cudnn(params, activation="relu", **cudnn_sizes(RELU)), weights)
    assert_equal(RNNWeights.from_torch(weights.to_torch(), activation="relu"), weights)
    path = tmp_path / "weights.safetensors"
    pytest.importorskip("safetensors", reason="writes the file")
    weights.to_safetensors(path)
    assert_equal(RNNWeights.from_safetensors(path, activation="relu"), weights)
    assert RNNWeights.from_safetensors(path).activation == "tanh"


def test_relu_predictions(rng):
    """Keras, cuDNN's op and PyTorch."""
    torch = pytest.importorskip("torch", reason="PyTorch, the peer compared with")
    weights, x = relu_weights(rng), rng.normal(size=(BATCH, TIME, INPUTS))
    module = torch.nn.RNN(
        INPUTS,
        UNITS,
        RELU.layers,
        nonlinearity="relu",
        batch_first=True,
        bidirectional=True,
        dtype=torch.float64,
    )
    module.load_state_dict({k: torch.from_numpy(v) for k, v in weights.to_torch().items()})
    assert_equal(RNNWeights.from_torch(module), weights)
    with torch.no_grad():
        want = module(torch.from_numpy(x))[0].numpy()
    layers = keras_layers(RELU._replace(kind="rnn_tanh"), activation="relu")
    set_weights(layers, weights.to_keras())
    for got in (run_keras(layers, x), run_cudnn(RELU, weights.to_cudnn(), x)):
        # Outputs of relu grow with the layers: relative to them.
        np.testing.assert_allclose(got, want, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("module", [keras.layers, tf_lstm_ops.keras], ids=lambda m: m.__name__)
def test_layers_say_their_activation(module):
    relu = built(module.SimpleRNN(UNITS, "relu"))
    assert RNNWeights.from_keras(relu).activation == "relu"
    assert RNNWeights.from_keras(relu.get_weights()).activation == "tanh"
    assert RNNWeights.from_keras(relu.get_weights(), activation="relu").activation == "relu"
    both = built(module.Bidirectional(module.SimpleRNN(UNITS, "relu")))
    assert RNNWeights.from_keras(both).activation == "relu"


ERRORS = {
    "of the layer": (
        lambda: RNNWeights.from_keras(built(keras.layers.SimpleRNN(UNITS)), activation="relu"),
        "activation must be that of the source, 'tanh', but is 'relu'",
    ),
    "another function": (
        lambda: RNNWeights.from_keras(built(keras.layers.SimpleRNN(UNITS, "elu"))),
        "activation must be 'tanh' or 'relu' but is 'elu'",
    ),
    "another one for arrays": (
        lambda: RNNWeights.from_keras([np.ones((3, 4)), np.ones((4, 4))], activation="elu"),
        "activation must be 'tanh' or 'relu' but is 'elu'",
    ),
    "two activations": (
        lambda: RNNWeights.from_keras(
            [
                built(keras.layers.SimpleRNN(INPUTS, "relu")),
                built(keras.layers.SimpleRNN(INPUTS)),
            ]
        ),
        "the layers have different activations: relu, tanh",
    ),
    "another layer": (
        lambda: RNNWeights.from_keras(built(keras.layers.GRU(UNITS))),
        "source must be a SimpleRNN but has layers of class GRU",
    ),
    "weights of an LSTM": (
        lambda: RNNWeights.from_torch(
            {"weight_ih_l0": np.zeros((16, 3)), "weight_hh_l0": np.zeros((16, 4))}
        ),
        "the weights are those of an LSTM, not of a plain RNN; use LSTMWeights",
    ),
    "a bias of two rows": (
        lambda: RNNWeights.from_keras([np.ones((3, 4)), np.ones((4, 4)), np.ones(8)]),
        r"recurrent_bias must be \(4,\) but is \(8,\)",
    ),
    "shape of R": (
        lambda: RNNWeights.from_onnx(np.ones((1, 4, 3)), np.ones((4, 4))),
        r"R must be \(D, H, H\) but is \(4, 4\)",
    ),
    "a projection": (
        lambda: RNNWeights.from_cudnn(np.ones(9), input_size=3, units=4, projection_size=2),
        "must be 0 for rnn_tanh but is 2",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, message = ERRORS[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_module_says_its_nonlinearity():
    torch = pytest.importorskip("torch", reason="PyTorch, the peer compared with")
    relu = torch.nn.RNNCell(INPUTS, UNITS, nonlinearity="relu")
    assert RNNWeights.from_torch(relu).activation == "relu"
    with pytest.raises(ValueError, match="must be that of the source, 'relu', but is 'tanh'"):
        RNNWeights.from_torch(relu, activation="tanh")
    for other in (LSTMWeights, GRUWeights):
        with pytest.raises(ValueError, match=r"those of a plain RNN, not of .*; use RNNWeights"):
            other.from_torch(relu)
