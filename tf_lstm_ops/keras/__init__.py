"""Keras layers on the fused ops."""

from tf_lstm_ops.keras.convert import convert_model, fallback_reasons
from tf_lstm_ops.keras.gru import GRU
from tf_lstm_ops.keras.lstm import LSTM, LSTMCell

__all__ = ["GRU", "LSTM", "LSTMCell", "convert_model", "fallback_reasons"]
