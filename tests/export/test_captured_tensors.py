"""Models that read tensors which are no variables: each file has their values, and no more inputs.

Such a tensor is captured by the trace of the model, in it or in a function, loop or branch in it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import export
from tf_lstm_ops.keras import GRU, LSTM

B, T, INPUTS, UNITS = 4, 6, 3, 5
# Of the largest element: float32, rounded in another order at each of a few dozen operations.
TOLERANCE = 1e-5


def normalization(x: Any) -> Any:
    layer = keras.layers.Normalization()
    layer.adapt(np.random.default_rng(1).normal(2, 3, (B, T, INPUTS)).astype("float32"))
    return LSTM(UNITS)(layer(x))


def offsets(x: Any) -> Any:
    """Two tensors, one of them twice."""
    one = tf.constant([1.0, 2.0, 3.0])
    return LSTM(UNITS)((x - one) * tf.constant([0.5, 0.25, 2.0]) + one)


class Scaled(keras.layers.Layer):
    """Reads a tensor attribute in a tf.function, in a loop and in a branch of it."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.shift = tf.constant([0.5, 2.0, 1.5]), tf.constant(0.25)
        self.own = tf.Variable([1.0, 2.0, 3.0], trainable=False)

    @tf.function
    def scaled(self, x: Any) -> Any:
        scale, shift = self.scale, self.shift
        x = tf.while_loop(lambda n, _: n < 3, lambda n, x: (n + 1, x * scale), (0, x))[1]
        return tf.cond(tf.reduce_sum(x) > 0, lambda: x + shift, lambda: x - shift) + self.own

    def call(self, x: Any) -> Any:
        return self.scaled(x)

    def compute_output_shape(self, shape: Any) -> Any:
        return shape


def own_layer(x: Any) -> Any:
    return LSTM(UNITS)(Scaled()(x))


def states(x: Any) -> Any:
    return LSTM(UNITS)(x, initial_state=[tf.fill([B, UNITS], 0.5), tf.fill([B, UNITS], -0.5)])


def mask(x: Any) -> Any:
    steps = tf.constant(np.arange(T) < np.arange(1, B + 1)[:, None])
    return GRU(UNITS, return_sequences=True)(x, mask=steps)


def loop(x: Any) -> Any:
    """Keras' own loop."""
    return LSTM(UNITS, activation="selu")(x - tf.constant([1.0, 2.0, 3.0]))


def stateful(x: Any) -> Any:
    return LSTM(UNITS, stateful=True)(x - tf.constant([1.0, 2.0, 3.0]))


def stock(x: Any) -> Any:
    return keras.layers.GRU(UNITS)(x - tf.constant([1.0, 2.0, 3.0]))


MODELS = {f.__name__: f for f in (normalization, offsets, own_layer, states, mask, loop, stateful)}
MODELS["stock"] = stock


def make_model(name: str) -> keras.Model:
    fixed = name in ("states", "mask", "stateful")
    x = keras.Input(
        **{"batch_shape": (B, T, INPUTS)} if fixed else {"shape": (T, INPUTS)}, name="x"
    )
    return keras.Model(x, keras.layers.Dense(2, name="last")(MODELS[name](x)))


def onnx(model: keras.Model, path: Path) -> Callable[[np.ndarray], Any]:
    pytest.importorskip("tf2onnx", reason="the converter of all other layers")
    runtime = pytest.importorskip("onnxruntime", reason="runs the files")
    export.onnx(model, path)
    session = runtime.InferenceSession(path)
    assert [given.name for given in session.get_inputs()] == ["x"]
    return lambda x: session.run(None, {"x": x})[0]


def saved_model(portable: bool) -> Callable[..., Any]:
    def write(model: keras.Model, path: Path) -> Callable[[np.ndarray], Any]:
        export.saved_model(model, path, portable=portable)
        loaded = tf.saved_model.load(path)
        return lambda x: loaded.serve(x)  # which needs the object, too

    return write


def tflite(model: keras.Model, path: Path) -> Callable[[np.ndarray], Any]:
    is_stateful = any(getattr(layer, "stateful", False) for layer in model.layers)
    export.tflite(model, path, batch_size=B, stateful=is_stateful)
    run = tf.lite.Interpreter(str(path)).get_signature_runner()
    details = run.get_input_details()
    zeros = {name: np.zeros(d["shape"], "float32") for name, d in details.items() if name != "x"}
    return lambda x: run(x=x, **zeros)["last"]


FORMATS = {
    "onnx": onnx,
    "saved_model": saved_model(False),
    "portable": saved_model(True),
    "tflite": tflite,
}
BY_DEFAULT = {
    *(("onnx", "own_layer"), ("saved_model", "stock")),
    *(("portable", "own_layer"), ("tflite", "normalization")),
}


def cases() -> list[Any]:
    pairs = [(form, name) for form in FORMATS for name in MODELS]
    marks = {pair: () if pair in BY_DEFAULT else pytest.mark.full for pair in pairs}
    return [pytest.param(*pair, marks=marks[pair]) for pair in pairs]


@pytest.mark.full
@pytest.mark.parametrize(("form", "name"), cases())
@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
def test_values_are_in_the_file(form: str, name: str, tmp_path: Path, recwarn: Any) -> None:
    model = make_model(name)
    x = np.random.default_rng(0).normal(1, 2, (B, T, INPUTS)).astype("float32")
    run = FORMATS[form](model, tmp_path / "model")
    assert not [w for w in recwarn if "was not compared" in str(w.message)]
    for state in (s for layer in model.layers for s in getattr(layer, "states", None) or []):
        state.assign(tf.zeros_like(state))
    want = np.asarray(model(x))
    np.testing.assert_allclose(run(x), want, rtol=0, atol=TOLERANCE * np.abs(want).max())


def test_a_table_is_an_error_in_words(tmp_path: Path) -> None:
    """A resource has no value that a file could have."""
    pytest.importorskip("tf2onnx", reason="the converter of all other layers")
    words = keras.Input((T,), dtype="string")
    found = keras.layers.StringLookup(vocabulary=["a", "b"], name="words")(words)
    model = keras.Model(words, LSTM(UNITS)(keras.layers.Embedding(3, INPUTS)(found)))
    path = tmp_path / "model.onnx"
    with pytest.raises(ValueError, match=r"layer words reads a resource .*, such as a table"):
        export.onnx(model, path)
    assert not list(tmp_path.iterdir())


def test_names_of_inputs_are_compared_where_nothing_runs_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file with another input is an error, although the check cannot run it."""
    tf2onnx = pytest.importorskip("tf2onnx", reason="the converter of all other layers")
    convert = tf2onnx.convert.from_function

    def wrong(*args: Any, **kwargs: Any) -> Any:
        proto, storage = convert(*args, **kwargs)
        further = type(proto.graph.input[0])()
        further.CopyFrom(proto.graph.input[0])
        further.name = "further"
        proto.graph.input.append(further)
        return proto, storage

    monkeypatch.setattr(tf2onnx.convert, "from_function", wrong)
    monkeypatch.setattr(export.check, "compare", lambda *args, **kwargs: None)
    model = make_model("offsets")
    with pytest.raises(ValueError, match=r"has the inputs \['x', 'further'\], .* \['x'\]"):
        export.onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
