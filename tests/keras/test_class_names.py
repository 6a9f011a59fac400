"""The names of classes in messages: those under which programs import them."""

import keras
import pytest

from tf_lstm_ops import keras as ours
from tf_lstm_ops.keras import class_names
from tf_lstm_ops.keras.of_cell import LSTMOfCell
from tf_lstm_ops.keras.stacked_cells import StackedCells


class LSTM(ours.LSTM):
    """A user's class with a name of ours."""


CLASSES = [name for name in ours.__all__ if isinstance(getattr(ours, name), type)]


@pytest.mark.parametrize("name", CLASSES)
def test_every_class_of_ours(name: str) -> None:
    assert class_names.public(getattr(ours, name)) == f"tf_lstm_ops.keras.{name}"


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (LSTM, f"{__name__}.LSTM"),
        (LSTMOfCell, "tf_lstm_ops.keras.LSTM"),
        (StackedCells, "tf_lstm_ops.keras.stacked_cells.StackedCells"),
        (keras.layers.LSTM, "keras.layers.LSTM"),
        (keras.layers.Layer, "keras.layers.Layer"),
    ],
)
def test_other_classes(kind: type, name: str) -> None:
    assert class_names.public(kind) == name
