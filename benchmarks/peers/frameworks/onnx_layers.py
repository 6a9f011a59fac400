"""The ONNX graphs of the rows of models.

The inputs are as the graph's nodes want them: signals [B, C, T] for Conv, indices [T, B] for LSTM.
So a graph has one transposition, from the convolutions to the LSTM, or none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from peers.models import Conv, Dense, Embed, ModelProblem, Pool, Recurrent
from tf_lstm_ops._arrays import Array


class GraphBuilder:
    """Nodes one after another, each of which reads the output of the one before.

    Args:
      axes: of the convolutions: 1; or 2, with an axis of size 1 before time, since a runtime may
        have other kernels for these.

    Attributes:
      nodes: the nodes.
      constants: the arrays that they read, by name.
      output: the name of the last output.
    """

    def __init__(self, axes: int) -> None:
        self.axes = axes
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.output = "x"

    def add(self, op: str, *others: Array | str, index: int = 0, **attributes: Any) -> None:
        """Adds a node.

        Args:
          op: its type.
          *others: its inputs behind the output before: arrays or names; "" for none.
          index: of the output that the next node reads.
          **attributes: its attributes.
        """
        number = len(self.nodes)
        names = []
        for k, value in enumerate(others):
            name = value if isinstance(value, str) else f"constant {number} {k}"
            if not isinstance(value, str):
                self.constants[name] = value
            names.append(name)
        outputs = [""] * index + [f"y {number}"]
        first = [names.pop(0), self.output] if op == "Gather" else [self.output]
        self.nodes.append(helper.make_node(op, [*first, *names], outputs, **attributes))
        self.output = outputs[index]

    def layer(self, layer: Any, weights: Any, lengths: str) -> None:
        """Adds the nodes of a layer.

        Args:
          layer: the layer.
          weights: its weights.
          lengths: the name of the input with the lengths; empty if there is none.
        """
        match layer:
            case Conv():
                self._convolution(layer, weights)
            case Pool(size):
                sizes = [1] * (self.axes - 1) + [size]
                self.add("MaxPool", kernel_shape=sizes, strides=sizes)
            case Embed():
                self.add("Gather", weights["table"])
            case Recurrent():
                self._lstm(layer, weights, lengths)
            case Dense():
                self.add("MatMul", weights["kernel"])
                self.add("Add", weights["bias"])
                self.add("Softmax", axis=-1)

    def _convolution(self, layer: Conv, weights: dict[str, Array]) -> None:
        kernel = np.transpose(weights["kernel"], (2, 1, 0))
        if self.axes == 2:
            kernel = kernel[:, :, None]
        before = (layer.size - 1) // 2 if layer.padding == "same" else 0
        behind = layer.size - 1 - before if layer.padding == "same" else 0
        none = [0] * (self.axes - 1)
        pads = [*none, before, *none, behind]
        self.add("Conv", np.ascontiguousarray(kernel), weights["bias"], pads=pads)
        if layer.normalized:
            names = "gamma", "beta", "mean", "variance"
            self.add("BatchNormalization", *(weights[name] for name in names), epsilon=1e-3)
        self.add("Relu")

    def to_steps(self) -> None:
        """From the layout of convolutions to [T, B, C]."""
        if self.axes == 2:
            self.add("Squeeze", np.array([2]))
        self.add("Transpose", perm=[2, 0, 1])

    def _lstm(self, layer: Recurrent, weights: Any, lengths: str) -> None:
        both = layer.directions == 2
        self.add(
            "LSTM",
            *(*weights.to_onnx()[:3], lengths),
            index=0 if layer.sequences else 1,
            hidden_size=layer.units,
            direction="bidirectional" if both else "forward",
        )
        if both:
            assert not layer.sequences
            self.add("Transpose", perm=[1, 0, 2])
            self.add("Reshape", np.array([0, -1]))
        else:
            self.add("Squeeze", np.array([1 if layer.sequences else 0]))


def model_graph(problem: ModelProblem, axes: int) -> tuple[Any, dict[str, Array]]:
    """Makes the graph of a row of models.

    Args:
      problem: its data.
      axes: see GraphBuilder.

    Returns:
      The graph, whose output is "y", and its inputs by name.
    """
    is_signal = problem.x.ndim == 3
    x = np.ascontiguousarray(np.transpose(problem.x, (0, 2, 1) if is_signal else (1, 0)))
    inputs = {"x": x[:, :, None] if is_signal and axes == 2 else x}
    if problem.lengths is not None:
        inputs["lengths"] = problem.lengths
    builder = GraphBuilder(axes)
    is_steps = not is_signal
    for layer, weights in problem.layers:
        if isinstance(layer, Recurrent) and not is_steps:
            builder.to_steps()
            is_steps = True
        builder.layer(layer, weights, "lengths" if "lengths" in inputs else "")
    builder.nodes[-1].output[0] = "y"
    rank = 3 if _has_steps(problem) else 2
    graph = helper.make_graph(
        builder.nodes,
        "model",
        [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in inputs.items()
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)],
        [numpy_helper.from_array(a, name) for name, a in builder.constants.items()],
    )
    return graph, inputs


def model_output(y: Array, problem: ModelProblem) -> dict[str, Array]:
    """The output of the graph in the form in which the results of peers are compared.

    Args:
      y: [T, B, O] or [B, O].
      problem: the data of the row.

    Returns:
      The output, [B, T, O] or [B, O].
    """
    return {"output": np.swapaxes(y, 0, 1) if _has_steps(problem) else np.copy(y)}


def _has_steps(problem: ModelProblem) -> bool:
    """Whether there is an output for each step."""
    return all(each.sequences for each, _ in problem.layers if isinstance(each, Recurrent))
