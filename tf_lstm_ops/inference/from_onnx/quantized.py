"""Operators of quantised graphs, which a session computes in the numbers that integers stand for.

The activations are not rounded to integers. So a session is nearer to the model from before the
quantisation than the file is.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_onnx.elementwise import along_features, scaled
from tf_lstm_ops.inference.from_onnx.products import dense
from tf_lstm_ops.inference.from_onnx.recurrent import recurrent
from tf_lstm_ops.inference.from_onnx.values import Array, Call, Operand, Operator, Quantized
from tf_lstm_ops.inference.layers.activations import clipped


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


def _scale_of(call: Call) -> tuple[float, Array]:
    """The scale and the zero point, which has the type of the integers."""
    scale, zero = call.constant(1, "scale"), np.zeros(1, np.uint8)
    if call.operand(2) is not None:
        zero = call.constant(2, "zero point")
        call.attributes.ignore()  # the zero point has the type, and one scale has no axis
    if scale.size != 1 or zero.size != 1:
        refuse("it has a scale for each element of an axis of an array that is computed")
    return float(scale.item()), zero.ravel()


def _quantize(call: Call) -> list[Operand]:
    """Numbers within the range of the integers."""
    scale, zero = _scale_of(call)
    if zero.dtype.kind not in "iu" or not scale > 0:
        refuse(f"its integers are {zero.dtype}, with the scale {scale}")
    kind, offset = np.iinfo(zero.dtype), int(zero[0])
    low, high = ((bound - offset) * scale for bound in (kind.min, kind.max))
    if not high > 0:
        refuse(f"its largest number is {high}")
    x = call.traced()
    within = layers.Chain(clipped(low, high))(x.value)
    return [Quantized(x.with_value(within), "codes", numbers=(scale, offset))]


def _dequantize(call: Call) -> list[Operand]:
    """The numbers that integers stand for: of an array, or rows of a table."""
    scale, zero = _scale_of(call)
    given = call.operand(0)
    if isinstance(given, Quantized):
        if given.kind != "codes" or given.numbers != (scale, int(zero[0])):
            refuse("its scale or zero point is not that of QuantizeLinear")
        return [given.array]
    x, numbers = along_features(call.traced(), np.array(scale))
    return [scaled(x, numbers, -float(zero[0]) * numbers)]


# Operators that round their inputs to integers.
_ROUNDING = ("DynamicQuantizeLinear", "DynamicQuantizeLSTM", "QuantizeLinear")


def rounds(model: Any) -> bool:
    """Whether a model rounds what it computes, which a session does not.

    Args:
      model: the ``onnx.ModelProto``.

    Returns:
      True if it does.
    """
    return any(node.op_type in _ROUNDING for node in model.graph.node)


_OF_AXES = ("axis", "block_size", "saturate", "precision")  # of scales of an axis, and of float8
OPERATORS = {
    "DynamicQuantizeLinear": Operator(_quantize_dynamically),
    "MatMulInteger": Operator(_product_of_integers),
    "QuantizeLinear": Operator(_quantize, ignored=_OF_AXES),
    "DequantizeLinear": Operator(_dequantize, ignored=(*_OF_AXES, "output_dtype")),
    "com.microsoft.DynamicQuantizeLSTM": Operator(recurrent, of_integers=True),
}
