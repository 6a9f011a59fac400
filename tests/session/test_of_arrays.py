"""Sessions of weights and pairs of arrays, without Keras."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from session.without_tensorflow import HOOK
from tf_lstm_ops.inference import Session, layers
from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

FEATURES, UNITS = 3, 4
rng = np.random.default_rng(0)


def state(gates: int) -> dict[str, Any]:
    """The state dict of a module of PyTorch."""
    shapes = {"weight_ih_l0": (gates * UNITS, FEATURES), "weight_hh_l0": (gates * UNITS, UNITS)}
    biases = {name: (gates * UNITS,) for name in ("bias_ih_l0", "bias_hh_l0")}
    return {name: rng.normal(size=shape) for name, shape in (shapes | biases).items()}


KINDS: dict[Any, tuple[int, Any]] = {
    LSTMWeights: (4, layers.LSTM),
    GRUWeights: (3, layers.GRU),
    RNNWeights: (1, layers.SimpleRNN),
}
X = rng.normal(size=(2, 5, FEATURES)).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_weights(kind: Any) -> None:
    """Their layer returns all steps, as PyTorch does."""
    gates, layer = KINDS[kind]
    weights = kind.from_torch(state(gates))
    expected = Session.from_layers([layer(weights, return_sequences=True)])
    for session in (Session(weights), Session([weights]), Session.from_layers(weights)):
        np.testing.assert_array_equal(session(X), expected(X))


def test_weights_and_a_dense_layer() -> None:
    weights = LSTMWeights.from_torch(state(4))
    kernel, bias = rng.normal(size=(UNITS, 2)), rng.normal(size=2)
    expected = Session.from_layers(
        [layers.LSTM(weights, return_sequences=True), layers.Dense(kernel, bias)]
    )
    chains: list[Any] = [
        [weights, (kernel, bias)],
        (weights, (kernel, bias)),
        [layers.Input((None, FEATURES)), weights, layers.Dense(kernel, bias)],
    ]
    for chain in chains:
        np.testing.assert_array_equal(Session(chain)(X), expected(X))
        np.testing.assert_array_equal(Session.from_layers(chain)(X), expected(X))
    only = Session((kernel, bias))
    np.testing.assert_allclose(only(np.ones((1, 1, UNITS)))[0, 0], kernel.sum(0) + bias, atol=1e-5)


@pytest.mark.parametrize("wrong", [[], [np.ones((2, 3))], [(np.ones((2, 3)), np.ones(4))]])
def test_other_lists_are_errors(wrong: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Session(wrong)
    with pytest.raises((TypeError, ValueError)):
        Session.from_layers(wrong)


def test_neither_tensorflow_nor_keras_is_needed() -> None:
    code = f"""{HOOK}
import numpy as np
from tf_lstm_ops.inference import Session
from tf_lstm_ops.weights import GRUWeights
state = {{"weight_ih_l0": np.ones((6, 3)), "weight_hh_l0": np.ones((6, 2))}}
session = Session([GRUWeights.from_torch(state), (np.ones((2, 4)), np.ones(4))])
print(session(np.ones((1, 2, 3))).shape)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(1, 2, 4)\n"


@pytest.mark.parametrize("wrong", [5, ([[1.0]], [1.0])])
def test_a_wrong_element_needs_no_tensorflow(wrong: Any) -> None:
    """The message says what a chain of arrays takes."""
    weights = LSTMWeights.from_torch(state(4))
    with pytest.raises(TypeError, match=r"layers must be a list .* pairs \(kernel"):
        Session([weights, wrong])
    with pytest.raises(TypeError, match="axis must be an integer"):
        layers.Slice(1.5)  # type: ignore[arg-type]
