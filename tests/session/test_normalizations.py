"""Unit and group normalisation of sessions: beside Keras, PyTorch, and NumPy in float64."""

from typing import Any

import keras
import numpy as np
import pytest

from tf_lstm_ops.inference import Session, layers

B, T, C = 3, 5, 6
TOLERANCE = 2e-6  # float32, of means of up to 30 numbers of about 3
KERAS = {
    "groups": lambda: keras.layers.GroupNormalization(2),
    "a group for each channel": lambda: keras.layers.GroupNormalization(-1, center=False),
    "one group": lambda: keras.layers.GroupNormalization(1, epsilon=0.1, scale=False),
    "rows": lambda: keras.layers.UnitNormalization(),
    "rows by their axis": lambda: keras.layers.UnitNormalization(axis=[2]),
}


@pytest.mark.parametrize("kind", KERAS)
def test_keras(kind: str, rng: Any) -> None:
    layer = KERAS[kind]()
    model = keras.Sequential([keras.Input((None, C)), layer])
    for weight in layer.weights:
        weight.assign(rng.standard_normal(weight.shape))
    x = rng.normal(2, 3, (B, T, C)).astype("float32")
    x[0, 0] = 0
    session = Session(model)
    np.testing.assert_allclose(session(x), model(x), rtol=0, atol=4 * TOLERANCE)
    assert session.can_stream == kind.startswith("rows")


@pytest.mark.parametrize("layer", [keras.layers.UnitNormalization(1)], ids=["steps"])
def test_keras_along_another_axis(layer: Any) -> None:
    model = keras.Sequential([keras.Input((T, C)), layer])
    with pytest.raises(ValueError, match=r"it normalizes axis \[1\], not the last one"):
        Session(model)


@pytest.mark.parametrize("groups", [1, 2, 3, C])
def test_groups(groups: int, rng: Any) -> None:
    gamma, beta = rng.standard_normal((2, C))
    x = rng.standard_normal((B, T, C), np.float32)
    parts = x.astype(float).reshape(B, T, groups, -1)
    mean, variance = (f(parts, axis=(1, 3), keepdims=True) for f in (np.mean, np.var))
    want = ((parts - mean) / np.sqrt(variance + 0.1)).reshape(x.shape) * gamma + beta
    made = layers.GroupNormalization(C, groups, gamma, beta, 0.1)
    np.testing.assert_allclose(Session.from_layers([made])(x), want, atol=TOLERANCE)


def test_the_least_length() -> None:
    x = np.array([[3, 4], [0, 0], [0.03, 0.04]], np.float32)
    given = layers.Input((2,))
    bounded, free = (layers.UnitNormalization(2, floor)(given) for floor in (0.1, 0.0))
    session = Session.from_graph(given, [bounded, free])
    first, second = session(x)
    np.testing.assert_allclose(first, [[0.6, 0.8], [0, 0], [0.3, 0.4]], rtol=1e-6)
    np.testing.assert_allclose(second, [[0.6, 0.8], [np.nan, np.nan], [0.6, 0.8]], rtol=1e-6)


WRONG = {
    "no divisor": (lambda: layers.GroupNormalization(C, 4), "groups must divide size, 6"),
    "a negative length": (lambda: layers.UnitNormalization(C, -1.0), "floor must be 0 or pos"),
    "other channels": (lambda: layers.UnitNormalization(C + 1), "must be 7"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_refusals(kind: str) -> None:
    make, message = WRONG[kind]
    with pytest.raises(ValueError, match=message):
        Session.from_layers([layers.Input((None, C)), make()])


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["instance", "groups", "plain"])
def test_torch(kind: str) -> None:
    torch = pytest.importorskip("torch", reason="has the modules")
    torch.manual_seed(0)
    norm = {
        "instance": lambda: torch.nn.InstanceNorm1d(C, affine=True),
        "groups": lambda: torch.nn.GroupNorm(3, C),
        "plain": lambda: torch.nn.InstanceNorm1d(C),
    }[kind]()
    modules = [torch.nn.Conv1d(2, C, 3), norm, torch.nn.LeakyReLU()]
    session = Session.from_torch(modules)  # compares
    x = torch.randn(B, T, 2)
    want = torch.nn.Sequential(*modules)(x.mT).mT.detach().numpy()
    np.testing.assert_allclose(session(x.numpy()), want, rtol=0, atol=8 * TOLERANCE)


@pytest.mark.torch
def test_running_statistics_of_torch() -> None:
    torch = pytest.importorskip("torch", reason="has the modules")
    norm = torch.nn.InstanceNorm1d(C, track_running_stats=True)
    with pytest.raises(ValueError, match="track_running_stats=False"):
        Session.from_torch([norm])
