"""Keras layers on the fused ops. On PyTorch: `accelerate` only.

Raises:
  ImportError: Keras has another backend than TensorFlow and PyTorch, or cannot be imported.
"""

from typing import Any

from tf_lstm_ops import _keras_backend, _registration

if not _keras_backend.is_torch():
    _registration.ops()  # before what it imports is imported here
    if problem := _keras_backend.problem():
        raise ImportError(problem)
from tf_lstm_ops.keras.acceleration import accelerate

if not _keras_backend.is_torch():
    from tf_lstm_ops.keras.bidirectional import Bidirectional
    from tf_lstm_ops.keras.convert import convert_model, fallback_reasons
    from tf_lstm_ops.keras.gru import GRU
    from tf_lstm_ops.keras.gru_cell import GRUCell
    from tf_lstm_ops.keras.lstm import LSTM
    from tf_lstm_ops.keras.lstm_cell import LSTMCell
    from tf_lstm_ops.keras.old_files.arguments import keras_2_hard_sigmoid
    from tf_lstm_ops.keras.old_files.load import load_h5, load_h5_weights
    from tf_lstm_ops.keras.simple_rnn import SimpleRNN
    from tf_lstm_ops.keras.stacked import StackedGRU, StackedLSTM

__all__ = [
    "GRU",
    "LSTM",
    "Bidirectional",
    "GRUCell",
    "LSTMCell",
    "SimpleRNN",
    "StackedGRU",
    "StackedLSTM",
    "accelerate",
    "convert_model",
    "fallback_reasons",
    "keras_2_hard_sigmoid",
    "load_h5",
    "load_h5_weights",
]

_NAMES = tuple(__all__)
if _keras_backend.is_torch():
    __all__ = ["accelerate"]


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        raise ImportError(_keras_backend.problem())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
