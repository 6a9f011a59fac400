"""Small ONNX models. The package onnx must be installed."""

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tf_lstm_ops.weights import GRUWeights, LSTMWeights, RNNWeights

Array = np.ndarray
OPS = {LSTMWeights: "LSTM", GRUWeights: "GRU", RNNWeights: "RNN"}


def value(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)


def tensors(arrays: dict[str, Array]) -> list[onnx.TensorProto]:
    return [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]


def graph(
    nodes: list[onnx.NodeProto],
    arrays: dict[str, Array] | None = None,
    inputs: tuple[str, ...] = ("x",),
    outputs: tuple[str, ...] = (),
) -> onnx.GraphProto:
    """A graph. Its output is the last node's first by default."""
    found = [value(name) for name in outputs or nodes[-1].output[:1]]
    return helper.make_graph(nodes, "g", [value(x) for x in inputs], found, tensors(arrays or {}))


def model(graph: onnx.GraphProto, opset: int = 17) -> onnx.ModelProto:
    domains = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=domains, ir_version=8)


def layer(
    weights: Any, name: str = "", source: str = "x", output: str = "y", **attributes: Any
) -> tuple[onnx.NodeProto, dict[str, Array]]:
    """A node of one layer, and the arrays that it reads."""
    arrays = {
        f"{output}_{key}": array
        for key, array in weights.to_onnx()._asdict().items()
        if array is not None
    }
    inputs = [source, *(f"{output}_{key}" for key in "WRB")]
    inputs += ["", "", "", f"{output}_P"] if f"{output}_P" in arrays else []
    if weights.directions == 2:
        attributes.setdefault("direction", "bidirectional")
    if isinstance(weights, GRUWeights):
        attributes.setdefault("linear_before_reset", int(weights.reset_after))
    if isinstance(weights, RNNWeights) and weights.activation != "tanh":
        attributes.setdefault("activations", ["Relu"] * weights.directions)
    attributes.setdefault("hidden_size", weights.units)
    op = OPS[type(weights)]
    return helper.make_node(op, inputs, [output], name=name, **attributes), arrays


def one_layer(weights: Any, opset: int = 17, **attributes: Any) -> onnx.ModelProto:
    """A model of one node."""
    node, arrays = layer(weights, "layer", **attributes)
    return model(graph([node], arrays), opset)
