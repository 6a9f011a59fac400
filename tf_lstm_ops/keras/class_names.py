"""The names of classes of layers and cells in messages."""

from __future__ import annotations

from collections.abc import Iterable

import keras

# The classes of `tf_lstm_ops.keras`, which imports this module.
_OURS = (
    *("Bidirectional", "GRU", "GRUCell", "LSTM", "LSTMCell", "SimpleRNN", "StackedGRU"),
    "StackedLSTM",
)


def public(kind: type) -> str:
    """The name of a class, as programs write it.

    Args:
      kind: a class of a layer or cell.

    Returns:
      Such as "keras.layers.LSTM", "tf_lstm_ops.keras.LSTM" or "my_module.MyLayer".
    """
    package = kind.__module__.partition(".")[0]
    if package == "keras" and vars(keras.layers).get(kind.__name__) is kind:
        return f"keras.layers.{kind.__name__}"
    if package == "tf_lstm_ops":
        for base in kind.__mro__:
            if base.__name__ in _OURS and base.__module__.startswith("tf_lstm_ops."):
                return f"tf_lstm_ops.keras.{base.__name__}"
    return f"{kind.__module__}.{kind.__qualname__}"


def why_not_known(kind: type, known: Iterable[type]) -> str:
    """Why a class is not one of those that are known, if it seems to be one.

    Args:
      kind: the class of a layer or cell.
      known: the classes that are known.

    Returns:
      ": it is a subclass of keras.layers.LSTM, whose call may differ", for a subclass; else "".
    """
    bases = [base for base in kind.__mro__[1:] if base in set(known)]
    if not bases:
        return ""
    return f": it is a subclass of {public(bases[0])}, whose call may differ"
