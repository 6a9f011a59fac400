"""tract on the ONNX models of a row. Its Python package computes on one thread."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import tract

from peers.cases import Problem, Row
from peers.frameworks import Prepared, fastest
from peers.frameworks.onnx_model import OnnxModel, onnx_models
from peers.models import ModelProblem
from tf_lstm_ops._arrays import Array


def build(row: Row, problem: Problem | ModelProblem, _threads: int) -> Prepared:
    """Makes a call of tract.

    Args:
      row: the row. tract refuses lengths.
      problem: its data.

    Returns:
      The call to time.
    """
    return fastest(_prepared(model) for model in onnx_models(row, problem))


def _prepared(model: OnnxModel) -> Prepared:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(model.content)
        graph = tract.onnx().load(path)
    names = [graph.input_name(k) for k in range(graph.input_count())]
    inputs = [tract.Tensor.from_numpy(model.inputs[name]) for name in names]
    runnable = graph.into_model().into_runnable()

    def results(outputs: list[Any]) -> dict[str, Array]:
        return model.results(outputs[0].to_numpy())

    return Prepared(lambda: runnable.run(inputs), results)
