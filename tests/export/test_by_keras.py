"""``model.export`` in the formats "onnx" and "litert", of models with layers of ours."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops.keras import GRU, LSTM

onnx = pytest.importorskip("onnx", reason="reads the files")
runtime = pytest.importorskip("onnxruntime", reason="runs the files")
pytest.importorskip("tf2onnx", reason="the converter of all other layers")
pytestmark = pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")

T, INPUTS, UNITS = 6, 3, 5
# Of the largest element: float32, rounded in another order.
TOLERANCE = 2e-6
WHOLE = tf.lite.OpsSet.TFLITE_BUILTINS


class Own(keras.Model):
    """A subclassed model of two arguments."""

    def __init__(self) -> None:
        super().__init__(name="own")
        self.layer = LSTM(UNITS)

    def build(self, x_shape: Any, y_shape: Any) -> None:
        self.built = True

    def call(self, x: Any, y: Any) -> Any:
        return self.layer(x) + y


def sequential(layer: Any = None, steps: int | None = T, batch: int | None = None) -> keras.Model:
    x = keras.Input(batch_shape=(batch, steps, INPUTS), name="x")
    return keras.Sequential([x, layer or LSTM(UNITS), keras.layers.Dense(2, name="last")])


def dicts() -> keras.Model:
    given = {name: keras.Input((T, INPUTS), name=name) for name in "ba"}
    return keras.Model(given, {"y": LSTM(UNITS)(given["a"]), "x": GRU(UNITS)(given["b"])})


def own() -> keras.Model:
    model = Own()
    model(np.ones([2, T, INPUTS], "float32"), np.ones([2, UNITS], "float32"))
    return model


MODELS = {
    "sequential": sequential,
    "dicts": dicts,
    "own": own,
    "masked": lambda: keras.Sequential(
        [keras.Input((T, INPUTS), name="x"), keras.layers.Masking(), GRU(UNITS)]
    ),
    "open": lambda: sequential(steps=None),
    "loop": lambda: sequential(LSTM(UNITS, activation="selu")),
    "fixed": lambda: sequential(batch=3),
    "normalised": lambda: keras.Sequential(
        [
            keras.Input((T, INPUTS), name="x"),
            keras.layers.Normalization(mean=1.0, variance=2.0),
            keras.layers.Bidirectional(LSTM(UNITS)),
        ]
    ),
}


def examples(model: keras.Model, rows: int) -> list[np.ndarray]:
    """The inputs, of twice the number of rows that a converter assumes."""
    rng = np.random.default_rng(0)
    if model.name == "own":
        return [rng.normal(size=s).astype("float32") for s in ((rows, T, INPUTS), (rows, UNITS))]
    return [rng.normal(size=(rows, T, INPUTS)).astype("float32") for _ in model.inputs]


def predicted(model: keras.Model, inputs: list[np.ndarray]) -> list[np.ndarray]:
    if model.name == "own":
        return [np.asarray(model(*inputs))]
    given = inputs[0] if len(inputs) == 1 else dict(zip("ab", inputs, strict=True))
    return [np.asarray(y) for y in keras.tree.flatten(model(given))]


def of_onnx(path: Path, inputs: list[np.ndarray]) -> list[np.ndarray]:
    session = runtime.InferenceSession(path)
    names = [given.name for given in session.get_inputs()]
    return session.run(None, dict(zip(names, inputs, strict=True)))


def of_litert(path: Path, inputs: list[np.ndarray]) -> list[np.ndarray]:
    run = tf.lite.Interpreter(str(path)).get_signature_runner("serving_default")
    results = run(**dict(zip(run.get_input_details(), inputs, strict=True)))
    return [results[name] for name in sorted(results)]


RUN: dict[str, tuple[str, Callable[..., list[np.ndarray]]]] = {
    "onnx": ("model.onnx", of_onnx),
    "litert": ("model.tflite", of_litert),
}
BY_DEFAULT = {
    ("onnx", "dicts"),
    ("onnx", "own"),
    ("litert", "sequential"),
}


@pytest.mark.parametrize(
    ("form", "name"),
    [
        pytest.param(f, n, marks=() if (f, n) in BY_DEFAULT else pytest.mark.full)
        for f in RUN
        for n in MODELS
    ],
)
def test_results(form: str, name: str, tmp_path: Path, capsys: Any) -> None:
    """Of the batch size that the model's Input fixes, and else of any."""
    model, (file, run) = MODELS[name](), RUN[form]
    model.export(tmp_path / file, format=form)
    assert capsys.readouterr().out.endswith(f"Saved artifact at '{tmp_path / file}'.\n")
    for rows in (3,) if name == "fixed" else (1, 3):
        inputs = examples(model, rows)
        wanted = predicted(model, inputs)
        for got, want in zip(run(tmp_path / file, inputs), wanted, strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=0, atol=TOLERANCE * np.abs(want).max())


def test_onnx_has_nodes_and_keras_arguments(tmp_path: Path, capsys: Any) -> None:
    model, path = sequential(), tmp_path / "model.onnx"
    specs = [keras.InputSpec(name="given", shape=(4, T, INPUTS), dtype="float32")]
    model.export(str(path), "onnx", False, input_signature=specs, opset_version=15)
    assert capsys.readouterr().out == ""
    proto = onnx.load(path)
    assert [node.op_type for node in proto.graph.node].count("LSTM") == 1
    assert [entry.version for entry in proto.opset_import if not entry.domain] == [15]
    [given] = runtime.InferenceSession(path).get_inputs()
    assert (given.name, given.shape) == ("given", [4, T, INPUTS])
    model.export(path, format="onnx", verbose=True)
    assert "LSTM 1," in capsys.readouterr().out


def test_a_tensor_as_a_spec_leaves_the_batch_size_open(tmp_path: Path) -> None:
    """As in Keras' own exports."""
    path, x = tmp_path / "model.onnx", np.ones([4, T, INPUTS], "float32")
    sequential().export(path, format="onnx", input_signature=[tf.constant(x)], verbose=False)
    assert of_onnx(path, [x[:3]])[0].shape == (3, 2)


@pytest.mark.full
def test_litert_has_the_fused_op_where_the_batch_size_is_known(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "model.tflite"
    specs = keras.InputSpec(shape=(2, T, INPUTS), dtype="float32")
    sequential().export(path, format="litert", input_signature=specs, verbose=True)
    assert "layer lstm" in (printed := capsys.readouterr().out)
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in printed


@pytest.mark.full
@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize(
    "options",
    [
        {"optimizations": [tf.lite.Optimize.DEFAULT]},
        {"target_spec": {"supported_ops": [WHOLE], "supported_types": [tf.float16]}},
        {
            "optimizations": [tf.lite.Optimize.DEFAULT],
            "representative_dataset": lambda: [[x[None]] for x in examples(sequential(), 8)[0]],
            "experimental_new_quantizer": True,
        },
    ],
    ids=["dynamic", "float16", "int8"],
)
def test_options_of_litert(options: dict[str, Any], tmp_path: Path) -> None:
    path, plain = tmp_path / "model.tflite", tmp_path / "plain.tflite"
    model = sequential(LSTM(64))
    model.export(plain, format="litert", verbose=False)
    model.export(path, format="litert", verbose=False, **options)
    assert path.stat().st_size != plain.stat().st_size
    [x] = examples(model, 2)
    # The tolerance of "int8", for all of them.
    np.testing.assert_allclose(of_litert(path, [x])[0], model(x), rtol=0, atol=0.3)


@pytest.mark.full
def test_a_file_of_other_types_is_not_compared(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    with pytest.warns(UserWarning, match="not compared with the model: inference_input_type gives"):
        sequential().export(
            path,
            format="litert",
            optimizations=[tf.lite.Optimize.DEFAULT],
            representative_dataset=lambda: [[np.ones([1, T, INPUTS], "float32")]],
            target_spec={"supported_ops": [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]},
            inference_input_type=tf.int8,
        )
    [given] = tf.lite.Interpreter(str(path)).get_input_details()
    assert given["dtype"] is np.int8


@pytest.mark.parametrize(
    ("form", "file", "make", "options", "error", "message"),
    [
        ("onnx", "m.onnx", sequential, {"dynamo": True}, TypeError, "Received: dynamo"),
        ("onnx", "m.onnx", sequential, {"opset_version": 13}, ValueError, "opset=13"),
        ("litert", "m.txt", sequential, {}, ValueError, r"must end with \.tflite.*m\.txt"),
        ("litert", "m.tflite", sequential, {"nonsense": 1}, ValueError, "'nonsense'"),
        (
            "litert",
            "m.tflite",
            sequential,
            {"target_spec": {"nonsense": 1}},
            ValueError,
            "'nonsense'",
        ),
        (
            "litert",
            "m.tflite",
            lambda: sequential(LSTM(UNITS, stateful=True, name="s"), batch=2),
            {},
            ValueError,
            r"layer s is stateful.*tflite\(model, path, stateful=True\)",
        ),
    ],
)
def test_what_is_refused_is_named(
    form: str, file: str, make: Any, options: Any, error: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        make().export(tmp_path / file, format=form, **options)
    assert not list(tmp_path.iterdir())


def test_other_models_stay_with_keras(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tf_lstm_ops.export.by_keras.write_onnx", lambda *args, **kwargs: 1 // 0)
    x = keras.Input((INPUTS,))
    model = keras.Model(x, keras.layers.Dense(2)(x))
    model(np.ones([1, INPUTS]))
    model.export(tmp_path / "model.onnx", format="onnx", verbose=False)
    assert (tmp_path / "model.onnx").exists()
    with pytest.raises(ZeroDivisionError):
        sequential().export(tmp_path / "ours.onnx", format="onnx")
