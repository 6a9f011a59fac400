"""The contents of a .tflite file: which ops it has, and what the converter left out of them.

Schema: TensorFlow Lite's schema.fbs, whose Python classes come with TensorFlow.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from tf_lstm_ops import _cells, _tf_private
from tf_lstm_ops.export.lite.layers import FUSED_OP, Recurrent
from tf_lstm_ops.keras import op_arguments

# Positions in the inputs of the fused op.
_INPUT_TO_FORGET, _PEEPHOLES, _STATES = 2, (9, 10, 11), (18, 19)
_LARGEST_RATIO = 2.0**19  # of the scales of a term and a sum in the interpreter's ADD
_QUANTISED = 0.02  # the largest error of quantised weights, relative to the largest weight


def operations(content: bytes) -> Counter[str]:
    """Counts the ops of a file, those of loop bodies included.

    Args:
      content: the file.

    Returns:
      The number of ops by name. The name of an op that TensorFlow Lite does not have begins with
      ``CUSTOM``.
    """
    model = _read(content)
    return Counter(_name(model, op) for graph in model.subgraphs for op in graph.operators)


def zero_sums(content: bytes) -> list[str]:
    """The quantised sums that were zero in the whole calibration.

    The interpreter ends the process when it prepares one: its scale is too small for its terms.

    Args:
      content: the file.

    Returns:
      The names of the sums; [] without quantisation.
    """
    model, names = _read(content), []
    for graph in model.subgraphs:
        for op in graph.operators:
            if _name(model, op) in ("ADD", "SUB"):
                *terms, total = (_scale(graph.tensors[i]) for i in (*op.inputs, op.outputs[0]))
                if total > 0 and max(terms) >= _LARGEST_RATIO * total:
                    names.append(graph.tensors[op.outputs[0]].name.decode())
    return names


def _scale(tensor: Any) -> float:
    """The scale of a tensor of integers; 0 if it has none."""
    scales = getattr(tensor.quantization, "scale", None)
    return 0.0 if scales is None or len(scales) == 0 else float(scales[0])


def finish(content: bytes, fused: list[Recurrent]) -> bytes:
    """Completes the fused ops that the converter wrote.

    The converter bounds the cell state by 10 and knows no peepholes. With float16 it makes the
    states outputs of an op, which the verifier of TensorFlow Lite rejects. A loop that begins with
    zeros shares them with a fused op: the converter makes variables without a value of both. The
    names of the values of unrolled steps, which the converter joins, can be most of a file.

    Args:
      content: the file.
      fused: the layer of each fused op.

    Returns:
      The new file.

    Raises:
      ValueError: a layer has no fused op in the file, or an op belongs to no layer.
    """
    model = _read(content)
    missing = list(fused)
    for graph in model.subgraphs:
        states: list[int] = []
        for op in graph.operators:
            if _name(model, op) == FUSED_OP:
                states += [op.inputs[position] for position in _STATES]
                weights = _values(model, graph, op.inputs[_INPUT_TO_FORGET])
                item = min(missing, key=lambda item: _distance(item, weights), default=None)
                if item is None or _distance(item, weights) > _QUANTISED:
                    raise ValueError("the converter made a fused op that belongs to no layer")
                missing.remove(item)
                _finish_op(model, graph, op, item.layer)
        _fill_with_zeros(model, graph, states)
        for tensor in graph.tensors:  # the first of the names that the converter joins
            tensor.name = tensor.name.partition(b";")[0]
    if missing:
        paths = ", ".join(item.path for item in missing)
        raise ValueError(f"the converter made no fused op of these layers: {paths}")
    return bytes(_tf_private.lite_files().convert_object_to_bytearray(model))


def _distance(item: Recurrent, weights: np.ndarray) -> float:
    """How far the weights of a fused op are from those of a layer, relative to the largest."""
    units = item.layer.units
    expected = np.asarray(item.layer.cell.kernel)[:, units : 2 * units].T  # gate f
    found = weights[:, :-1]  # without the column of the clearing step
    if found.shape != expected.shape:
        return math.inf
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-30))


def _values(model: Any, graph: Any, index: int) -> np.ndarray:
    """The values of a constant, float32, or float16 or int8 with a scale."""
    schema = _tf_private.lite_schema()

    made_by = [op for op in graph.operators if index in op.outputs]
    if made_by:  # DEQUANTIZE
        index = made_by[0].inputs[0]
    tensor = graph.tensors[index]
    types = {schema.TensorType.FLOAT16: "float16", schema.TensorType.INT8: "int8"}
    data = np.asarray(model.buffers[tensor.buffer].data, np.uint8)
    values = data.view(types.get(tensor.type, "float32")).reshape(tensor.shape)
    if tensor.type != schema.TensorType.INT8:
        return values.astype("float32")
    return values * np.float32(tensor.quantization.scale[0])


def _finish_op(model: Any, graph: Any, op: Any, layer: Any) -> None:
    op.builtinOptions.cellClip = op_arguments.attributes(layer)["cell_clip"]
    for position in _STATES:
        state = graph.tensors[op.inputs[position]]
        if not state.isVariable:
            raise ValueError("the converter made a state of a fused op that is not a variable")
        op.inputs[position] = _add_tensor(graph, state.name + b"_state", state.shape, state.type)
        graph.tensors[-1].isVariable = True
        graph.tensors[-1].quantization = state.quantization
        state.isVariable = False
    peephole = op_arguments.weights(layer.cell, "KerasLSTM")["peephole"]
    if peephole is None:
        return
    like = graph.tensors[op.inputs[_INPUT_TO_FORGET]]
    for position, row, gate in zip(
        _PEEPHOLES, np.asarray(peephole), _cells.PEEPHOLES.encode(), strict=True
    ):
        name = b"peephole_" + bytes([gate])
        op.inputs[position] = _add_constant(model, graph, name, row, like)


def _fill_with_zeros(model: Any, graph: Any, indices: list[int]) -> None:
    """Gives zeros to the former states of fused ops that other ops read, too."""
    read = {index for op in graph.operators for index in op.inputs}
    made = {index for op in graph.operators for index in op.outputs}
    for index in set(indices) & read - made:
        tensor = graph.tensors[index]
        tensor.buffer = _add_buffer(model, np.zeros(tensor.shape, "float32"))


def _add_constant(model: Any, graph: Any, name: bytes, values: Any, like: Any) -> int:
    """A constant of the type of another, float32 or int8; its index."""
    schema = _tf_private.lite_schema()

    index = _add_tensor(graph, name, list(values.shape), like.type)
    if like.type == schema.TensorType.INT8:  # symmetric, as the weights
        scale = max(float(np.abs(values).max()), 1e-30) / 127
        values = np.round(values / scale).astype(np.int8)
        graph.tensors[index].quantization = schema.QuantizationParametersT()
        graph.tensors[index].quantization.scale = [scale]
        graph.tensors[index].quantization.zeroPoint = [0]
    graph.tensors[index].buffer = _add_buffer(model, values)
    return index


def _add_buffer(model: Any, values: np.ndarray) -> int:
    """The bytes of an array in a file; the index of their buffer."""
    schema = _tf_private.lite_schema()

    buffer = schema.BufferT()
    buffer.data = np.frombuffer(np.ascontiguousarray(values).tobytes(), np.uint8)
    model.buffers.append(buffer)
    return len(model.buffers) - 1


def _add_tensor(graph: Any, name: bytes, shape: Any, dtype: int) -> int:
    """A tensor without a value; its index."""
    schema = _tf_private.lite_schema()

    tensor = schema.TensorT()
    tensor.name, tensor.shape, tensor.type, tensor.buffer = name, shape, dtype, 0
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _name(model: Any, op: Any) -> str:
    schema = _tf_private.lite_schema()

    code = model.operatorCodes[op.opcodeIndex]
    number = max(code.builtinCode, code.deprecatedBuiltinCode)
    names = {value: name for name, value in vars(schema.BuiltinOperator).items()}
    if number == schema.BuiltinOperator.CUSTOM:
        return f"CUSTOM {code.customCode.decode()}"
    return names[number]


def _read(content: bytes) -> Any:
    return _tf_private.lite_files().read_model_from_bytearray(bytearray(content))
