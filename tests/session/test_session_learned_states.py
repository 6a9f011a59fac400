"""Sessions, streams and exports of layers with learned_initial_state."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import export
from tf_lstm_ops.inference import Session
from tf_lstm_ops.keras import GRU, LSTM, Bidirectional, SimpleRNN

BATCH, STEPS, INPUTS, UNITS = 3, 5, 4, 3
# float32 sums of at most INPUTS + UNITS products of numbers near 1, over STEPS steps.
TOLERANCE = 1e-6


@pytest.fixture
def x(rng: np.random.Generator) -> Any:
    return rng.normal(size=(BATCH, STEPS, INPUTS)).astype("float32")


def model_of(rng: np.random.Generator, *layers: Any) -> Any:
    model = keras.Sequential([keras.Input((STEPS, INPUTS)), *layers])
    model.set_weights([rng.uniform(-0.7, 0.7, w.shape) for w in model.get_weights()])
    return model


def learning(kind: Any, **given: Any) -> Any:
    return kind(UNITS, learned_initial_state=True, return_sequences=True, **given)


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE)


CASES = {
    "LSTM": [(LSTM, {})],
    "projection": [(LSTM, {"projection_size": 2})],
    "GRU": [(GRU, {})],
    "SimpleRNN": [(SimpleRNN, {})],
    "both": [(LSTM, {})],
}


def layers_of(name: str) -> list[Any]:
    layers = [learning(kind, **given) for kind, given in CASES[name]]
    return [Bidirectional(each) for each in layers] if name == "both" else layers


@pytest.mark.parametrize("name", CASES)
def test_sessions(name: str, x: Any, rng: Any, tmp_path: Path) -> None:
    model = model_of(rng, *layers_of(name))
    session = Session(model)
    close(session(x), model(x))
    session.save(tmp_path / "model.session")
    close(Session.load(tmp_path / "model.session")(x), model(x))


@pytest.mark.parametrize("name", ["LSTM", "GRU", "SimpleRNN"])
def test_streams_begin_with_them(name: str, x: Any, rng: Any) -> None:
    model = model_of(rng, *layers_of(name))
    stream, wanted = Session(model).stream(BATCH), model(x)
    for _ in range(2):
        for k in range(STEPS):
            close(stream(x[:, k]), wanted[:, k])
        stream.reset()


def test_another_state_of_a_call(x: Any, rng: Any) -> None:
    """It replaces the learned one."""
    sequences, h = keras.Input((None, INPUTS)), keras.Input((UNITS,))
    layer = learning(GRU)
    model = keras.Model([sequences, h], layer(sequences, initial_state=h))
    model.set_weights([rng.uniform(-0.7, 0.7, w.shape) for w in model.get_weights()])
    given = [x, rng.normal(size=(BATCH, UNITS)).astype("float32")]
    close(Session(model)(given), model(given))


@pytest.mark.parametrize("name", ["LSTM", pytest.param("GRU", marks=pytest.mark.full)])
def test_onnx(name: str, x: Any, rng: Any, tmp_path: Path) -> None:
    """They are initializers, expanded to the batch."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    model, file = model_of(rng, *layers_of(name)), tmp_path / "model.onnx"
    export.onnx(model, file)
    kinds = {node.op_type for node in onnx.load(file).graph.node}
    assert kinds >= {name, "Expand"} and "Loop" not in kinds
    session = runtime.InferenceSession(file)
    for rows in (BATCH, 1):
        given = {session.get_inputs()[0].name: x[:rows]}
        close(session.run(None, given)[0], model(x[:rows]))
    close(Session.from_onnx(file)(x), model(x))


@pytest.mark.full
def test_tflite(x: Any, rng: Any, tmp_path: Path) -> None:
    model, file = model_of(rng, *layers_of("LSTM")), tmp_path / "model.tflite"
    export.tflite(model, file, batch_size=BATCH)
    interpreter = tf.lite.Interpreter(str(file))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], x)
    interpreter.invoke()
    close(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), model(x))
    with pytest.raises(ValueError, match="model computes the layer's initial_state"):
        export.tflite(model, file, batch_size=BATCH, stateful=True)
