"""Files with Keras models, for other programs. Each function runs the file before it returns.

Raises:
  ImportError: Keras has another backend than TensorFlow, or cannot be imported.
"""

from tf_lstm_ops import keras as _keras  # noqa: F401  its import says why Keras cannot be used
from tf_lstm_ops.export import by_keras
from tf_lstm_ops.export.onnx import onnx
from tf_lstm_ops.export.saved_model import saved_model
from tf_lstm_ops.export.tflite import tflite

by_keras.replace()

__all__ = ["onnx", "saved_model", "tflite"]
