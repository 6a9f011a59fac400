"""Sessions of Keras models."""

from __future__ import annotations

from tf_lstm_ops.inference.from_keras.model import graph_of

__all__ = ["graph_of"]
