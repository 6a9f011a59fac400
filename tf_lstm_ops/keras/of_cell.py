"""LSTM, GRU and SimpleRNN in place of ``keras.layers.RNN`` of one cell."""

from __future__ import annotations

from typing import Any

import keras

from tf_lstm_ops.keras.fused import PACKAGE
from tf_lstm_ops.keras.gru import GRU
from tf_lstm_ops.keras.lstm import LSTM
from tf_lstm_ops.keras.simple_rnn import SimpleRNN
from tf_lstm_ops.keras.single_layer import SingleLayerRNN


class _OfCell(SingleLayerRNN):
    """A layer whose configuration keeps the name of its cell."""

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "cell_name": self.cell.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        options = {name: value for name, value in config.items() if name != "cell_name"}
        layer = super().from_config(options)
        layer.cell.name = config.get("cell_name", layer.cell.name)
        return layer


def _replacing_rnn(base: type) -> Any:
    """A class that computes what `base` does, and whose weights fit files of ``RNN``.

    A .weights.h5 file identifies the layers of a Sequential or functional model, and those of a
    list, by the names of their classes.
    """
    cls = type("RNN", (_OfCell, base), {"__module__": __name__, "__doc__": base.__doc__})
    return keras.saving.register_keras_serializable(PACKAGE, f"{base.__name__}OfCell")(cls)


LSTMOfCell, GRUOfCell = _replacing_rnn(LSTM), _replacing_rnn(GRU)
SimpleRNNOfCell = _replacing_rnn(SimpleRNN)
