"""The check of a model with small outputs: rounding is no error, a wrong file is one."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import export
from tf_lstm_ops.export import check, onnx_nodes
from tf_lstm_ops.export.signature import signature
from tf_lstm_ops.keras import LSTM

FEATURES = 8


def classifier(activation: str, bias: float, units: int = 1) -> keras.Model:
    """Its answers are small: those of a sigmoid or softmax, far from its middle."""
    keras.utils.set_random_seed(1)
    last = keras.layers.Dense(units, activation=activation)
    model = keras.Sequential([keras.Input((40, FEATURES)), LSTM(4), last])
    kernel, biases = last.get_weights()
    biases[-1] += bias
    last.set_weights([0.1 * kernel, biases])
    return model


MODELS = {
    "sigmoid": lambda: classifier("sigmoid", -12.0),
    "softmax": lambda: classifier("softmax", -11.0, units=2),
    "mean of 20": lambda: with_mean(classifier("sigmoid", -9.0, units=20)),
    "zero": lambda: classifier("relu", -9.0),
}


def with_mean(model: keras.Model) -> keras.Model:
    mean = keras.ops.mean(model.outputs[0], axis=-1, keepdims=True)
    return keras.Model(model.inputs, mean)


EXPORTS = {
    "onnx": export.onnx,
    "saved_model": export.saved_model,
    "portable": lambda model, path: export.saved_model(model, path, portable=True),
    "tflite": export.tflite,
    "dynamic": lambda model, path: export.tflite(model, path, "dynamic"),
    "int8": lambda model, path: export.tflite(
        model, path, "int8", np.random.default_rng(0).normal(size=(4, 40, FEATURES))
    ),
}
BY_DEFAULT = {
    ("onnx", "sigmoid"),
    ("tflite", "sigmoid"),
}


@pytest.mark.full
@pytest.mark.parametrize(
    ("form", "name"),
    [
        pytest.param(f, n, marks=() if (f, n) in BY_DEFAULT else pytest.mark.full)
        for f in EXPORTS
        for n in MODELS
    ],
)
@pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")
def test_a_right_file_is_kept(form: str, name: str, tmp_path: Path, recwarn: Any) -> None:
    if form == "onnx":
        pytest.importorskip("tf2onnx", reason="the converter of all other layers")
    EXPORTS[form](MODELS[name](), tmp_path / "model")
    assert (tmp_path / "model").exists()
    assert not [w for w in recwarn if "was not compared" in str(w.message)]


def test_a_wrong_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a classifier whose answers are around 1e-3."""
    pytest.importorskip("tf2onnx", reason="the converter of all other layers")
    replace = onnx_nodes._replace

    def wrong(graph: Any, node: Any, kind: str, weights: Any, attributes: Any) -> None:
        replace(graph, node, kind, weights._replace(R=-weights.R), attributes)

    monkeypatch.setattr(onnx_nodes, "_replace", wrong)
    with pytest.raises(ValueError, match="predicts something else than the model"):
        export.onnx(classifier("sigmoid", -7.0), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def scaled(factor: float) -> Callable[[keras.Model], Callable[[Any], Any]]:
    return lambda model: lambda inputs: [model(*inputs) * factor]


@pytest.mark.parametrize("size", [1.0, 1e-2, 1e-3])
def test_a_thousandth_is_found(size: float) -> None:
    """Of outputs that are as large as `size`."""
    x = keras.Input((FEATURES,))
    model = keras.Model(x, keras.layers.Lambda(lambda x: size * tf.tanh(x))(x))
    for factor, passes in ((1.001, False), (1.0001, True), (1.0, True)):
        run = scaled(factor)(model)
        if passes:
            check.compare(model, run, signature(model), "the file")
        else:
            with pytest.raises(ValueError, match="predicts something else"):
                check.compare(model, run, signature(model), "the file")


def test_the_worst_output_of_several_is_named() -> None:
    """A difference that is large beside a tiny output, but allowed, does not hide another one."""
    x = keras.Input((FEATURES,))
    tiny = keras.layers.Lambda(lambda x: 1e-9 * tf.tanh(x))(x)
    model = keras.Model(x, [tiny, keras.layers.Lambda(tf.tanh)(x)])

    def run(inputs: Any) -> list[Any]:
        small, large = model(*inputs)
        return [small + 1e-8, large * 1.001]

    with pytest.raises(ValueError, match=r"difference is 0\.00.*, where the largest element is 0"):
        check.compare(model, run, signature(model), "the file")
