"""Inference without TensorFlow: sessions and streams of recurrent models.

A `Session` is made from a Keras model, or from `layers` with arrays. It computes the model on the
CPU by the C library of ``include/tf_lstm_ops.h``. `Session.save` and `Session.load` write and read
its file. `LayerWeights` has the type of a layer's weights. Nothing but a session of a Keras model
needs more than NumPy. `get_include` and `get_library_dir` return folders for programs in C.
"""

from tf_lstm_ops._folders import get_include, get_library_dir
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.compare import Comparison, OutputErrors
from tf_lstm_ops.inference.session import Session
from tf_lstm_ops.inference.stream import Stream
from tf_lstm_ops.inference.weight_types import LayerWeights

__all__ = [
    "Comparison",
    "LayerWeights",
    "OutputErrors",
    "Session",
    "Stream",
    "get_include",
    "get_library_dir",
    "layers",
]
