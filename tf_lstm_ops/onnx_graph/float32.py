"""Models of other floats as models of float32, in which sessions compute."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tf_lstm_ops.onnx_graph import tensors
from tf_lstm_ops.onnx_graph.attributes import graphs, short, subgraphs
from tf_lstm_ops.onnx_graph.budget import budget_of
from tf_lstm_ops.onnx_graph.constants import Constants

if TYPE_CHECKING:
    import onnx

FLOAT, FLOAT16, DOUBLE = 1, 10, 11  # numbers of TensorProto.DataType
_OTHERS = (FLOAT16, DOUBLE)


def float_types(model: onnx.ModelProto) -> set[int]:
    """The types of floats that a model has.

    Args:
      model: the model.

    Returns:
      The types of its inputs if some are floats, else those of its initializers.
    """
    known = {tensor.name for tensor in model.graph.initializer}
    given = {
        value.type.tensor_type.elem_type for value in model.graph.input if value.name not in known
    }
    floats = (FLOAT, *_OTHERS)
    return given.intersection(floats) or {
        tensor.data_type for tensor in model.graph.initializer if tensor.data_type in floats
    }


def require_types(model: onnx.ModelProto) -> None:
    """Checks that the types of a model fit its operators.

    Args:
      model: the model.

    Raises:
      ValueError: they do not.
    """
    inference = importlib.import_module("onnx.shape_inference")
    try:
        inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:  # classes of the C++ part of onnx
        raise ValueError(str(error)) from error


def in_float32(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    """A model that computes in float32 what a model computes in other types.

    ONNX Runtime has few operators of float16 and float64.

    Args:
      model: the model.
      opset: the version of its default domain.

    Returns:
      A copy whose float16 and float64 are float32, rounded where constants are rounded; the model
      itself if it has no such types.

    Raises:
      ValueError: the types of the model do not fit its operators.
    """
    if not any(_has_others(graph) for graph in graphs(model.graph)):
        return model
    require_types(model)
    made: Any = type(model)()
    made.CopyFrom(model)
    _convert(made.graph, Constants(model.graph, opset=opset, budget=budget_of(model)))
    return made


def _has_others(graph: onnx.GraphProto) -> bool:
    if any(value.type.tensor_type.elem_type in _OTHERS for value in graph.input):
        return True
    if any(tensor.data_type in _OTHERS for tensor in graph.initializer):
        return True
    return any(
        attribute.t.data_type in _OTHERS or (attribute.name == "to" and attribute.i in _OTHERS)
        for node in graph.node
        for attribute in node.attribute
    )


def _convert(graph: onnx.GraphProto, constants: Constants) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type in _OTHERS:
            value.type.tensor_type.elem_type = FLOAT
    for tensor in graph.initializer:
        _convert_tensor(tensor)
    for node in graph.node:
        array = constants.get(node.output[0]) if node.op_type == "Cast" else None
        if array is not None:  # it may have rounded
            _set_constant(node, array)
        for attribute in node.attribute:
            if attribute.name == "to" and attribute.i in _OTHERS:
                attribute.i = FLOAT
            _convert_tensor(attribute.t)
        for _, part in subgraphs(node):
            _convert(part, Constants(part, constants))


def _set_constant(node: onnx.NodeProto, array: tensors.Array) -> None:
    """Makes a node a constant."""
    numpy_helper = importlib.import_module("onnx.numpy_helper")
    node.op_type = "Constant"
    del node.input[:], node.attribute[:]
    attribute = node.attribute.add(name="value", type=4)  # a tensor
    attribute.t.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array)))


def _convert_tensor(tensor: onnx.TensorProto) -> None:
    if tensor.data_type not in _OTHERS:
        return
    numpy_helper = importlib.import_module("onnx.numpy_helper")
    array = tensors.to_array(tensor, f"tensor {short(tensor.name)}")
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    tensor.CopyFrom(numpy_helper.from_array(narrow, tensor.name))
