"""TimeDistributed of a recurrent layer with an unknown number of steps.

Keras 3.15 traces it for as many steps as the batch has rows.
"""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_lstm_ops import export
from tf_lstm_ops.keras import LSTM

pytestmark = [pytest.mark.filterwarnings("ignore:.*tf.lite.Interpreter is deprecated")]
EXPORTS = {
    "saved_model": export.saved_model,
    "onnx": export.onnx,
    "tflite": export.tflite,
}


def make_model() -> keras.Model:
    x = keras.Input((None, 4, 3))
    return keras.Model(x, keras.layers.TimeDistributed(LSTM(5), name="each")(x))


@pytest.mark.parametrize(
    "name", ["saved_model", *(pytest.param(n, marks=pytest.mark.full) for n in ("onnx", "tflite"))]
)
def test_the_error_names_the_layer_and_what_to_do(name: str, tmp_path: Path) -> None:
    if name == "onnx":
        pytest.importorskip("tf2onnx", reason="the converter of all other layers")
        pytest.importorskip("onnxruntime", reason="runs the files")
    if name == "tflite" and not hasattr(tf, "lite"):
        pytest.skip("this TensorFlow has no TensorFlow Lite")
    model = make_model()
    traced = tf.function(model, input_signature=[tf.TensorSpec([None, None, 4, 3])])
    if traced(np.ones([2, 7, 4, 3], "float32")).shape != (2, 2, 5):
        pytest.skip("this version of Keras traces it for all steps")
    message = r"(?s)TimeDistributed layer each\. .*Make the model with an Input of a fixed number"
    with pytest.raises(ValueError, match=message):
        EXPORTS[name](model, tmp_path / "model")
