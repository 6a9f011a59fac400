"""ONNX Runtime on the ONNX models of a row."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
import onnxruntime
from onnxruntime.quantization import QuantType, quantize_dynamic

from peers.cases import Problem, Row
from peers.frameworks import Prepared, fastest
from peers.frameworks.onnx_model import OnnxModel, onnx_models
from peers.models import ModelProblem


def build(row: Row, problem: Problem | ModelProblem, threads: int, int8: bool = False) -> Prepared:
    """Makes a call of ONNX Runtime.

    Args:
      row: the row.
      problem: its data.
      threads: the number of threads.
      int8: whether the models are quantized dynamically, with a scale for each tensor or channel.

    Returns:
      The call to time.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    models = onnx_models(row, problem)
    if int8:
        models = [
            model._replace(content=quantized(model.content, per_channel))
            for model in models
            for per_channel in (False, True)
        ]
    return fastest(_prepared(model, options) for model in models)


def quantized(content: bytes, per_channel: bool) -> bytes:
    """Quantizes a model dynamically: its weights to int8, activations at run time.

    Args:
      content: the serialised model.
      per_channel: whether each column of a weight has a scale of its own.

    Returns:
      The serialised model.

    Raises:
      ValueError: the model has no node that can be quantized.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("float32.onnx", "int8.onnx")]
        paths[0].write_bytes(content)
        quantize_dynamic(*paths, per_channel=per_channel, weight_type=QuantType.QInt8)
        found = paths[1].read_bytes()
    if not any("Quantize" in n.op_type for n in onnx.load_from_string(found).graph.node):
        raise ValueError("ONNX Runtime quantizes no node of this model")
    return found


def _prepared(model: OnnxModel, options: onnxruntime.SessionOptions) -> Prepared:
    session = onnxruntime.InferenceSession(
        model.content, options, providers=["CPUExecutionProvider"]
    )
    return Prepared(lambda: session.run(["y"], model.inputs)[0], model.results)
