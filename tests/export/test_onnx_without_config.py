"""export.onnx of models with stock layers that Keras cannot make again from a configuration."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

from tf_lstm_ops import export

onnx = pytest.importorskip("onnx", reason="reads the files")
runtime = pytest.importorskip("onnxruntime", reason="runs the files")
pytest.importorskip("tf2onnx", reason="the converter of all other layers")

T, INPUTS, UNITS = 4, 3, 5


class Scale(keras.layers.Layer):
    """Has no get_config, and an argument that no configuration would have."""

    def __init__(self, factor: Any) -> None:
        super().__init__()
        self.factor = factor

    def call(self, x: Any) -> Any:
        return x * self.factor


class Own(keras.Model):
    """A subclassed model without get_config."""

    def __init__(self, factor: Any) -> None:
        super().__init__()
        self.scale = Scale(factor)
        self.layer = keras.layers.Bidirectional(keras.layers.LSTM(UNITS, return_sequences=True))
        self.last = keras.layers.GRU(UNITS)

    def call(self, x: Any) -> Any:
        return self.last(self.layer(self.scale(x)))


def functional(*layers: Any) -> keras.Model:
    x = y = keras.Input((T, INPUTS), name="x")
    for layer in layers:
        y = layer(y)
    return keras.Model(x, y)


def shared() -> keras.Model:
    """Two nested models have one layer, which the configuration does not say."""
    layer = keras.layers.LSTM(UNITS)
    x = keras.Input((T, INPUTS), name="x")
    halves = [functional(layer, keras.layers.Dense(2)) for _ in range(2)]
    return keras.Model(x, halves[0](x) + halves[1](2 * x))


def of_cell() -> Any:
    return keras.layers.RNN(keras.layers.LSTMCell(UNITS))


MODELS = {
    "layer": (lambda: functional(Scale(2.0), keras.layers.LSTM(UNITS)), {"LSTM": 1}),
    "both": (
        lambda: functional(Scale(2.0), keras.layers.Bidirectional(keras.layers.GRU(UNITS))),
        {"GRU": 2},
    ),
    "subclassed": (lambda: Own(2.0), {"LSTM": 2, "GRU": 1}),
    "shared": (shared, {"LSTM": 2}),
    "cell": (lambda: functional(Scale(2.0), of_cell()), {"LSTM": 1}),
    "stateful": (
        lambda: keras.Sequential(
            [keras.Input(batch_shape=(2, T, INPUTS)), keras.layers.GRU(UNITS, stateful=True)]
        ),
        {"GRU": 1},
    ),
    "loop": (
        lambda: functional(Scale(2.0), keras.layers.LSTM(UNITS, activation="selu", name="a")),
        {"Loop": 1},
    ),
}


@pytest.mark.full
@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("name", MODELS)
def test_stock_layers_become_nodes(name: str, tmp_path: Path, capsys: Any) -> None:
    make, kinds = MODELS[name]
    model, path = make(), tmp_path / "model.onnx"
    x = np.random.default_rng(0).normal(size=(2, T, INPUTS)).astype("float32")
    want, layers = np.asarray(model(x)), model.layers
    export.onnx(model, path, verbose=True)
    ops = [node.op_type for node in onnx.load(path).graph.node]
    assert {kind: ops.count(kind) for kind in ("LSTM", "GRU", "Loop") if kind in ops} == kinds
    session = runtime.InferenceSession(path)
    [got] = session.run(None, {session.get_inputs()[0].name: x})
    # Float32, rounded in another order.
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-6 * np.abs(want).max())
    assert model.layers == layers and not any("tf_lstm_ops" in str(type(a)) for a in layers)
    reason = "layer a is a Loop: activation is selu" in capsys.readouterr().out
    assert reason == ("Loop" in kinds)
