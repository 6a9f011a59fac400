"""A case as an ONNX graph."""

from __future__ import annotations

from typing import NamedTuple

import keras
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from one_row.cases import Case, Layer
from tf_lstm_ops.weights import GRUWeights, LSTMWeights

Array = np.ndarray


class OnnxGraph(NamedTuple):
    """A graph and the names of its values.

    Attributes:
      content: the serialised model, from x [T, 1, I] and the states.
      output: the name of the output, [T, 1, O] or [T, 1, 1, O]. It may be that of a new state.
      states: the names of each state and of the new state; empty if no states are kept.
      shapes: of the states, by name.
    """

    content: bytes
    output: str
    states: list[tuple[str, str]]
    shapes: dict[str, tuple[int, ...]]


def onnx_graph(case: Case, model: keras.Model) -> OnnxGraph:
    """Makes the graph of a case.

    A layer of one step hands on the final h of its node, which needs no further node.

    Args:
      case: the case.
      model: its Keras model.

    Returns:
      The graph. LSTM and GRU are single nodes; an LSTM with a projection, which ONNX lacks, is a
      graph of plain ops.
    """
    builder = _Builder(case)
    value = "x"
    for number, (layer, ours) in enumerate(zip(case.layers, model.layers, strict=True)):
        weights = [np.asarray(w) for w in ours.get_weights()]
        value = builder.add(layer, weights, value, f"l{number}")
    inputs = {"x": (case.time, 1, case.inputs)} | builder.shapes
    outputs = dict.fromkeys([value, *(new for _, new in builder.states)])
    graph = helper.make_graph(
        builder.nodes,
        "one_row",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        builder.constants,
    )
    # Versions that runtimes have known for several years.
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    found = onnx.shape_inference.infer_shapes(found)
    onnx.checker.check_model(found)
    return OnnxGraph(found.SerializeToString(), value, builder.states, builder.shapes)


class _Builder:
    """The parts of a graph."""

    def __init__(self, case: Case) -> None:
        self.keeps_states = case.keeps_states
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.states: list[tuple[str, str]] = []
        self.shapes: dict[str, tuple[int, ...]] = {}

    def add(self, layer: Layer, weights: list[Array], x: str, name: str) -> str:
        """Adds the nodes of a layer. Returns the name of its output."""
        if layer.kind == "dense":
            product = self.node("MatMul", [x, self.constant(weights[0])])
            return self.node("Sigmoid", [self.node("Add", [product, self.constant(weights[1])])])
        if layer.projection:
            return self.projected_lstm(layer, weights, x, name)
        return self.recurrent(layer, weights, x, name)

    def recurrent(self, layer: Layer, weights: list[Array], x: str, name: str) -> str:
        is_lstm = layer.kind == "lstm"
        arrays = (LSTMWeights if is_lstm else GRUWeights).from_keras([weights]).to_onnx()
        inputs = [x, *(self.constant(array) for array in arrays[:3]), ""]
        outputs = [f"{name}_y"]
        if self.keeps_states:
            kinds = "hc" if is_lstm else "h"
            inputs += [self.state(f"{name}_{kind}", (1, 1, layer.units)) for kind in kinds]
            outputs = ["", *(f"{name}_{kind}_new" for kind in kinds)]
        if arrays.P is not None:
            inputs += [""] * (7 - len(inputs)) + [self.constant(arrays.P)]
        options = {} if is_lstm else {"linear_before_reset": 1}
        node = helper.make_node(
            layer.kind.upper(), inputs, outputs, hidden_size=layer.units, **options
        )
        self.nodes.append(node)
        return outputs[1] if self.keeps_states else outputs[0]

    def projected_lstm(self, layer: Layer, weights: list[Array], x: str, name: str) -> str:
        """One step of an LSTM with peepholes and a projection, gates i, f, c, o."""
        kernel, recurrent, bias, peephole, projection = weights
        h = self.state(f"{name}_h", (1, 1, layer.size))
        c = self.state(f"{name}_c", (1, 1, layer.units))
        joined = self.node("Concat", [x, h], axis=2)
        product = self.node("MatMul", [joined, self.constant(np.vstack([kernel, recurrent]))])
        gates = [f"{name}_gate{k}" for k in range(4)]
        self.nodes.append(
            helper.make_node(
                "Split", [self.node("Add", [product, self.constant(bias)])], gates, axis=2
            )
        )

        def gate(pre: str, cell: str, row: int) -> str:
            seen = self.node("Mul", [cell, self.constant(peephole[row])])
            return self.node("Sigmoid", [self.node("Add", [pre, seen])])

        i, f = gate(gates[0], c, 0), gate(gates[1], c, 1)
        kept = self.node("Mul", [f, c])
        added = self.node("Mul", [i, self.node("Tanh", [gates[2]])])
        new_c = self.node("Add", [kept, added], f"{name}_c_new")
        o = gate(gates[3], new_c, 2)
        wide = self.node("Mul", [o, self.node("Tanh", [new_c])])
        return self.node("MatMul", [wide, self.constant(projection)], f"{name}_h_new")

    def state(self, name: str, shape: tuple[int, ...]) -> str:
        self.states.append((name, f"{name}_new"))
        self.shapes[name] = shape
        return name

    def constant(self, array: Array) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op: str, inputs: list[str], output: str = "", **options: int) -> str:
        output = output or f"value{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [output], **options))
        return output
