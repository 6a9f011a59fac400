"""Files with Keras models, for other programs. Each function runs the file before it returns."""

from tf_lstm_ops.export.saved_model import saved_model

__all__ = ["saved_model"]
