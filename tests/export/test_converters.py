"""Portable SavedModels in converters; converters that do not know the fused ops say what to call.

All models are traced with unknown batch size and time, as `model.export` does.
"""

import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import converters
from tf_lstm_ops.export import saved_model
from tf_lstm_ops.keras import GRU, LSTM

INPUTS, UNITS = 3, 4
SHAPES = [(2, 6), (1, 1), (3, 9)]
# The error promised for float32, times the largest number, which is below 1.
TOLERANCE = {"rtol": 0, "atol": 2e-6}


def make_model() -> keras.Model:
    """Masked, in both directions; with what stock layers do not have."""
    keras.utils.set_random_seed(1)
    options = {"recurrent_initializer": "glorot_uniform", "return_sequences": True}
    sequence = keras.Input((None, INPUTS), name="sequence")
    y = keras.layers.Masking()(sequence)
    y = keras.layers.Bidirectional(LSTM(UNITS, use_peephole=True, cell_clip=0.25, **options))(y)
    return keras.Model(sequence, GRU(UNITS)(y))


def make_inputs(batch: int, time: int, rng: np.random.Generator) -> np.ndarray:
    """Sequences, the first of which is padded at its end."""
    x = rng.normal(size=(batch, time, INPUTS)).astype("float32")
    x[0, 4:] = 0
    return x


@pytest.fixture(scope="module")
def model() -> keras.Model:
    model = make_model()
    model(np.zeros([1, 2, INPUTS]))  # Keras exports to ONNX what was called before
    return model


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("portable")
    saved_model(model, path, portable=True)
    return path


@pytest.mark.full
def test_tensorflow_lite(model, folder, rng):
    """With its own ops only: the converter's default rejects those that need TensorFlow (Flex)."""
    content = tf.lite.TFLiteConverter.from_saved_model(str(folder)).convert()
    interpreter = tf.lite.Interpreter(model_content=content)
    (source,), (target,) = interpreter.get_input_details(), interpreter.get_output_details()
    for shape in SHAPES:
        x = make_inputs(*shape, rng)
        interpreter.resize_tensor_input(source["index"], x.shape)
        interpreter.allocate_tensors()
        interpreter.set_tensor(source["index"], x)
        interpreter.invoke()
        np.testing.assert_allclose(interpreter.get_tensor(target["index"]), model(x), **TOLERANCE)


@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize("layer", [LSTM, GRU])
@pytest.mark.parametrize("time", [None, 6])
@pytest.mark.parametrize("portable", [False, True])
def test_tensorflow_lite_of_all_steps(layer, time, portable, tmp_path, rng):
    """By a portable SavedModel, and by the model, of which the converter gets plain ops, too."""
    recurrent = layer(UNITS, return_sequences=True)
    model = keras.Sequential([keras.Input((time, INPUTS)), recurrent])
    if portable:
        saved_model(model, tmp_path, portable=True)
        converter = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path))
    else:
        converter = tf.lite.TFLiteConverter.from_keras_model(model)
    interpreter = tf.lite.Interpreter(model_content=converter.convert())
    (source,), (target,) = interpreter.get_input_details(), interpreter.get_output_details()
    x = make_inputs(2, 6, rng)
    interpreter.resize_tensor_input(source["index"], x.shape)
    interpreter.allocate_tensors()
    interpreter.set_tensor(source["index"], x)
    interpreter.invoke()
    np.testing.assert_allclose(interpreter.get_tensor(target["index"]), model(x), **TOLERANCE)


@pytest.mark.full  # another process that imports TensorFlow
def test_tf2onnx(model, folder, tmp_path, rng):
    pytest.importorskip("tf2onnx", reason="the converter that is tested")
    runtime = pytest.importorskip("onnxruntime", reason="runs the converted file")
    path = tmp_path / "model.onnx"
    command = ["tf2onnx.convert", "--saved-model", str(folder), "--output", str(path)]
    converted = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
    assert converted.returncode == 0, converted.stderr
    session = runtime.InferenceSession(path)
    (source,) = session.get_inputs()
    for shape in SHAPES:
        x = make_inputs(*shape, rng)
        (y,) = session.run(None, {source.name: x})
        np.testing.assert_allclose(y, model(x), **TOLERANCE)


@pytest.mark.full  # another process that imports TensorFlow
def test_saved_model_cli(model, folder, tmp_path, rng):
    x = make_inputs(*SHAPES[-1], rng)
    np.save(tmp_path / "x.npy", x)
    arguments = ["--dir", folder, "--tag_set", "serve", "--signature_def", "serving_default"]
    files = ["--inputs", f"sequence={tmp_path / 'x.npy'}", "--outdir", tmp_path]
    program = "from tensorflow.python.tools.saved_model_cli import main; main()"
    command = [sys.executable, "-c", program, "run", *arguments, *files]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    np.testing.assert_allclose(np.load(tmp_path / "output_0.npy"), model(x), **TOLERANCE)


@pytest.mark.full  # the import takes seconds
def test_export_by_keras_says_what_to_call(model, tmp_path):
    """To OpenVINO; test_by_keras.py has the formats that can be written."""
    pytest.importorskip("openvino", reason="Keras imports it first")
    pytest.importorskip("keras.src.export.openvino", reason="a format that this Keras lacks")
    path = tmp_path / "m.xml"
    with pytest.raises(ValueError) as raised:
        model.export(str(path), format="openvino")
    text = str(raised.value)
    assert 'model.export(path, format="openvino") does not know the op TfLstmOps>KerasLSTM' in text
    assert "Call tf_lstm_ops.export.saved_model(model, folder, portable=True) and convert" in text
    assert not path.exists()


@pytest.mark.full  # the import takes seconds
def test_tf2onnx_of_a_model_says_what_to_call(model):
    tf2onnx = pytest.importorskip("tf2onnx", reason="the converter that is tested")
    with pytest.raises(ValueError, match=r"tf2onnx does not know the op TfLstmOps>KerasLSTM\."):
        tf2onnx.convert.from_keras(model)


@pytest.mark.parametrize("module", sorted(converters._CONVERTERS))
def test_callers_are_found_by_their_module(module):
    """Also those that are not installed; other callers are not taken for them."""
    namespace = {"__name__": module, "plain_ops_required": converters.plain_ops_required}
    exec("def trace(): return plain_ops_required('KerasGRU')", namespace)
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match=r"not know the op TfLstmOps>KerasGRU\. Call tf_lstm"):
            namespace["trace"]()
        namespace["__name__"] = "mine"
        assert not namespace["trace"]()
