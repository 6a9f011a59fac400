"""The operators of ONNX that a session computes.

What a version of ONNX changed is in the schemas of the package onnx, from which attributes have
their defaults. Nodes of constants are those of `onnx_graph.folding`.
"""

from __future__ import annotations

from tf_lstm_ops.inference.from_onnx import elementwise, products, quantized, recurrent, shapes
from tf_lstm_ops.inference.from_onnx.values import Operator

OPERATORS: dict[str, Operator] = {
    **shapes.OPERATORS,
    **elementwise.OPERATORS,
    **products.OPERATORS,
    **recurrent.OPERATORS,
    **quantized.OPERATORS,
}
