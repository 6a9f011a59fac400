"""OpenVINO on the ONNX model of one node."""

from __future__ import annotations

import openvino

from peers.cases import Problem, Row
from peers.frameworks import Prepared, fastest
from peers.frameworks.onnx_model import OnnxModel, onnx_models
from peers.models import ModelProblem


def build(row: Row, problem: Problem | ModelProblem, threads: int) -> Prepared:
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
    return fastest(_prepared(core, model, settings) for model in onnx_models(row, problem))


def _prepared(core: openvino.Core, model: OnnxModel, settings: dict[str, object]) -> Prepared:
    compiled = core.compile_model(core.read_model(model.content), "CPU", settings)
    request = compiled.create_infer_request()
    for name, array in model.inputs.items():
        request.set_tensor(name, openvino.Tensor(array))

    def call() -> object:
        request.infer()
        return request.get_output_tensor().data

    return Prepared(call, model.results)
