"""Inference without TensorFlow: sessions and streams of recurrent models.

A `Session` is made from a Keras model. It computes the model on the CPU by the C library of
``include/tf_lstm_ops.h``. `Session.save` and `Session.load` write and read its file. This module,
`Session.load` and all calls need NumPy only.
"""

from tf_lstm_ops.inference.session import Session
from tf_lstm_ops.inference.stream import Stream

__all__ = ["Session", "Stream"]
