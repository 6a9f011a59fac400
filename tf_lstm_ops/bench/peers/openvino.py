"""OpenVINO on the ONNX model of one node."""

from __future__ import annotations

import openvino

from tf_lstm_ops.bench.cases import Problem, Row
from tf_lstm_ops.bench.peers import Prepared
from tf_lstm_ops.bench.peers.onnx_model import onnx_inputs, onnx_model, onnx_pieces


def build(row: Row, problem: Problem, threads: int) -> Prepared:
    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # or a processor with AMX would take bfloat16
    }
    model = core.compile_model(core.read_model(onnx_model(row, problem)), "CPU", settings)
    request, inputs = model.create_infer_request(), onnx_inputs(problem)
    for name, array in inputs.items():
        request.set_tensor(name, openvino.Tensor(array))

    def call() -> object:
        request.infer()
        return request.get_output_tensor().data

    return Prepared(call, lambda y: onnx_pieces(y, problem))
