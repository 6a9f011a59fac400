"""ONNX Runtime on the ONNX models of a row."""

from __future__ import annotations

import onnxruntime

from peers.cases import Problem, Row
from peers.frameworks import Prepared, fastest
from peers.frameworks.onnx_model import OnnxModel, onnx_models
from peers.models import ModelProblem


def build(row: Row, problem: Problem | ModelProblem, threads: int) -> Prepared:
    """Makes a call of ONNX Runtime.

    Args:
      row: the row.
      problem: its data.
      threads: the number of threads.

    Returns:
      The call to time.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return fastest(_prepared(model, options) for model in onnx_models(row, problem))


def _prepared(model: OnnxModel, options: onnxruntime.SessionOptions) -> Prepared:
    session = onnxruntime.InferenceSession(
        model.content, options, providers=["CPUExecutionProvider"]
    )
    return Prepared(lambda: session.run(["y"], model.inputs)[0], model.results)
