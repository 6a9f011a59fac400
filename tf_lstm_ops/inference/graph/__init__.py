"""Graphs of layers before they are written to a file."""

from __future__ import annotations

from tf_lstm_ops.inference.graph.lowering import lower
from tf_lstm_ops.inference.graph.values import (
    Node,
    Value,
    input_value,
    is_of_call,
    mask_axes,
    node,
)

__all__ = ["Node", "Value", "input_value", "is_of_call", "lower", "mask_axes", "node"]
