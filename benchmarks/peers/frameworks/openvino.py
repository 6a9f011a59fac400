"""OpenVINO on the ONNX model of one node."""

from __future__ import annotations

import openvino

from peers.cases import Problem, Row
from peers.frameworks import Prepared
from peers.frameworks.onnx_model import onnx_inputs, onnx_model, onnx_output


def build(row: Row, problem: Problem, threads: int) -> Prepared:
    """Makes a call of OpenVINO.

    Args:
      row: the row.
      problem: its data.
      threads: the number of threads.

    Returns:
      The call to time.
    """
    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # otherwise bfloat16 on processors with AMX
    }
    model = core.compile_model(core.read_model(onnx_model(row, problem)), "CPU", settings)
    request, inputs = model.create_infer_request(), onnx_inputs(problem)
    for name, array in inputs.items():
        request.set_tensor(name, openvino.Tensor(array))

    def call() -> object:
        request.infer()
        return request.get_output_tensor().data

    return Prepared(call, lambda y: onnx_output(y, problem))
