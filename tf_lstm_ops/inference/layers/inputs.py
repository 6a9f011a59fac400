"""The input of a chain of layers that has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers.base import Input
from tf_lstm_ops.inference.layers.products import Embedding


def input_of(chain: Sequence[Any]) -> Value:
    """The input of a chain of layers that does not begin with one.

    Args:
      chain: layers.

    Returns:
      [B, T] of type int32 for an Embedding, else [B, T, I].

    Raises:
      ValueError: the first layer does not say how many features its input has.
    """
    first = chain[0] if chain else None
    if isinstance(first, Embedding):
        return Input((None,), "int32")
    record = getattr(first, "record", None) or next(iter(getattr(first, "records", ())), None)
    if record is None or not record.input_size:
        name = type(first).__name__
        raise ValueError(
            f"the size of the input is not known from {name}. Begin the layers with layers.Input"
        )
    return Input((None, record.input_size))
