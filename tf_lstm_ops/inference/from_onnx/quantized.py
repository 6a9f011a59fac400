"""Operators of quantised graphs, which a session computes in the numbers that integers stand for.

The activations are not rounded to integers. So a session is nearer to the model from before the
quantisation than the file is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference.from_onnx.elementwise import along_features, scaled
from tf_lstm_ops.inference.from_onnx.products import dense
from tf_lstm_ops.inference.from_onnx.recurrent import recurrent
from tf_lstm_ops.inference.from_onnx.values import Array, Call, Operand, Operator, Quantized


def _quantize_dynamically(call: Call) -> list[Operand]:
    x = call.traced()
    kinds = ("integers", "scale", "zero point")[: len(call.used)]
    return [*(Quantized(x, kind) for kind in kinds)]


def _integers_of(call: Call, index: int) -> Quantized:
    found = call.operand(index)
    if not isinstance(found, Quantized) or found.kind != "integers":
        refuse(f"its operand {index} is not made by DynamicQuantizeLinear")
    return found


def _product_of_integers(call: Call) -> list[Operand]:
    """A product in integers, which a multiplication with both scales follows."""
    x = _integers_of(call, 0)
    zero = call.operand(2)
    if not isinstance(zero, Quantized) or zero.kind != "zero point" or zero.array != x.array:
        refuse("its zero point is not that of its operand")
    kernel = call.constant(1, "matrix").astype(np.float64)
    if kernel.ndim != 2:
        refuse(f"its weights have {kernel.ndim} axes, not 2")
    if call.operand(3) is not None:
        kernel = kernel - _of_columns(call.constant(3, "zero point of the weights"), kernel)
    product = dense(x.array, kernel, None)
    return [Quantized(product, "product", scale_of=x.array)]


def _of_columns(numbers: Array, kernel: Array) -> Array:
    if numbers.size not in (1, kernel.shape[1]):
        refuse(f"it has {numbers.size} zero points for {kernel.shape[1]} columns")
    return numbers.astype(np.float64).ravel()


def computed(call: Call) -> list[Operand] | None:
    """What a node makes of what DynamicQuantizeLinear and MatMulInteger make.

    Args:
      call: the node.

    Returns:
      What its outputs stand for; None for an operator of its own.

    Raises:
      Refused: a session does not compute it.
    """
    kind = call.node.op_type
    if kind in OPERATORS:
        return None
    if kind in ("Cast", "Identity"):
        call.attributes.ignore()
        return [call.operand(0)]
    if kind != "Mul":
        refuse("it computes with the integers of a quantised array")
    return [_multiplied(call)]


def _multiplied(call: Call) -> Operand:
    first, second = call.operand(0), call.operand(1)
    if not isinstance(first, Quantized):
        first, second = second, first
    assert isinstance(first, Quantized)
    if first.kind == "scale" and isinstance(second, np.ndarray):
        return Quantized(first.array, "scale", numbers=second.astype(np.float64) * first.numbers)
    if not isinstance(second, Quantized) or {first.kind, second.kind} != {"scale", "product"}:
        refuse("it computes with the integers of a quantised array")
    scale, product = (first, second) if first.kind == "scale" else (second, first)
    if product.scale_of != scale.array:
        refuse("it multiplies by the scale of another array")
    x, numbers = along_features(product.array, np.asarray(scale.numbers))
    return scaled(x, numbers, np.float64(0))


def _dequantize(call: Call) -> list[Operand]:
    """Rows of a table of integers as the numbers that they stand for."""
    x = call.traced()
    scale = call.constant(1, "scale").astype(np.float64)
    zero: Array = np.zeros(1)
    if call.operand(2) is not None:
        zero = call.constant(2, "zero point").astype(np.float64)
    if scale.size != 1 or zero.size != 1:
        refuse("it has a scale for each element of an axis of an array that is computed")
    call.attributes.ignore()  # one scale has no axis
    x, numbers = along_features(x, scale.reshape(()))
    return [scaled(x, numbers, -zero.item() * numbers)]


# Operators that round their inputs to integers.
_ROUNDING = ("DynamicQuantizeLinear", "DynamicQuantizeLSTM")


def rounds(model: Any) -> bool:
    """Whether a model rounds what it computes, which a session does not.

    Args:
      model: the ``onnx.ModelProto``.

    Returns:
      True if it does.
    """
    return any(node.op_type in _ROUNDING for node in model.graph.node)


OPERATORS = {
    "DynamicQuantizeLinear": Operator(_quantize_dynamically),
    "MatMulInteger": Operator(_product_of_integers),
    "DequantizeLinear": Operator(_dequantize),
    "com.microsoft.DynamicQuantizeLSTM": Operator(recurrent, of_integers=True),
}
