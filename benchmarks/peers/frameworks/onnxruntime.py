"""ONNX Runtime on a model of one node."""

from __future__ import annotations

import onnxruntime

from peers.cases import Problem, Row
from peers.frameworks import Prepared
from peers.frameworks.onnx_model import onnx_inputs, onnx_model, onnx_output


def build(row: Row, problem: Problem, threads: int) -> Prepared:
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
    session = onnxruntime.InferenceSession(
        onnx_model(row, problem), options, providers=["CPUExecutionProvider"]
    )
    inputs = onnx_inputs(problem)
    return Prepared(lambda: session.run(["y"], inputs)[0], lambda y: onnx_output(y, problem))
