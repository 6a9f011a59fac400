"""A row's model in ONNX, for the peers that run ONNX models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from peers.cases import Problem, Row, compared_output
from peers.frameworks.onnx_layers import model_graph, model_output
from peers.models import ModelProblem
from tf_lstm_ops._arrays import Array


class OnnxModel(NamedTuple):
    """A model, and how it is called.

    Attributes:
      content: the serialised model, whose output is "y".
      inputs: arrays by the names of the model's inputs.
      results: converts y to the form in which the results of peers are compared.
    """

    content: bytes
    inputs: dict[str, Array]
    results: Callable[[Array], dict[str, Array]]


def onnx_models(row: Row, problem: Problem | ModelProblem) -> list[OnnxModel]:
    """Makes the ONNX models of a row, of which a peer runs the one that is fastest for it.

    Args:
      row: the row.
      problem: its data.

    Returns:
      One model; or two, if it has convolutions, with one and with two axes behind the channels.
    """
    if not isinstance(problem, ModelProblem):
        inputs = onnx_inputs(problem)
        graph = _one_node(row, problem)
        return [OnnxModel(_content(graph), inputs, lambda y: onnx_output(y, problem))]
    found = []
    for axes in (1, 2) if problem.x.ndim == 3 else (1,):
        graph, inputs = model_graph(problem, axes)
        found.append(OnnxModel(_content(graph), inputs, lambda y: model_output(y, problem)))
    return found


def _content(graph: onnx.GraphProto) -> bytes:
    # Versions that runtimes have known for several years.
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


def _one_node(row: Row, problem: Problem) -> onnx.GraphProto:
    """One LSTM or GRU node for a row with one layer.

    Its inputs are x [T, B, I], and lengths int32 [B] unless all steps are valid; its output is y
    [T, D, B, H].
    """
    weights = dict(zip("WRB", problem.weights.to_onnx()[:3], strict=True))
    shape = [row.time, row.batch, row.inputs]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    names = ["x", *weights]
    if problem.valid is not None:
        inputs.append(helper.make_tensor_value_info("lengths", TensorProto.INT32, [row.batch]))
        names.append("lengths")
    attributes = {"linear_before_reset": 1} if row.cell == "gru" else {}
    node = helper.make_node(
        row.cell.upper(),
        names,
        ["y"],
        hidden_size=row.units,
        direction="bidirectional" if row.directions == 2 else "forward",
        **attributes,
    )
    shape = [row.time, row.directions, row.batch, row.units]
    return helper.make_graph(
        [node],
        "recurrent",
        inputs,
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )


def onnx_inputs(problem: Problem) -> dict[str, Array]:
    """The inputs of the model.

    Args:
      problem: the data of the row.

    Returns:
      The arrays by the names of the model's inputs.
    """
    found: dict[str, Array] = {"x": np.ascontiguousarray(np.swapaxes(problem.x, 0, 1))}
    return found if problem.valid is None else {**found, "lengths": problem.lengths}


def onnx_output(y: Any, problem: Problem) -> dict[str, Array]:
    """The output of the model in the form in which the results of peers are compared.

    Args:
      y: [T, D, B, H].
      problem: the data of the row.

    Returns:
      See cases.compared_output.
    """
    time, directions, batch, units = y.shape
    output = np.transpose(y, (2, 0, 1, 3)).reshape(batch, time, directions * units)
    return compared_output(output, problem)
