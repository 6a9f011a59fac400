"""The input of a chain of layers that has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers.activations import Activation, PReLU
from tf_lstm_ops.inference.layers.base import Identity, Input
from tf_lstm_ops.inference.layers.products import Embedding
from tf_lstm_ops.inference.layers.shapes import Masking

_KEEP_SIZE = (file.PADDING, file.POOLING, file.UPSAMPLING)  # the number of features


def input_of(chain: Sequence[Any]) -> Value:
    """The input of a chain of layers that does not begin with one.

    Args:
      chain: layers, one or more.

    Returns:
      [B, T] of type int32 for an Embedding, else [B, T, I].

    Raises:
      ValueError: the layers do not say how many features its input has.
    """
    if isinstance(chain[0], Embedding):
        return Input((None,), "int32")
    for layer in chain:
        record = getattr(layer, "record", None) or next(iter(getattr(layer, "records", ())), None)
        size = 0 if record is None else record.input_size
        least = 2 if isinstance(layer, PReLU) else 1  # one factor is for any size
        if size >= least:
            return Input((None, size))
        keeps_size = record is not None and record.kind in _KEEP_SIZE
        if not keeps_size and not isinstance(layer, Activation | Identity | Masking | PReLU):
            break
    raise ValueError(
        f"the size of the input is not known from {chain[0].name}. Begin the layers with "
        "layers.Input"
    )
