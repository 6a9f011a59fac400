"""OpenVINO on the ONNX model of one node."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import openvino
from openvino import opset13 as opset
from openvino.passes import ConstantFolding, Manager

from peers.cases import Problem, Row
from peers.frameworks import Prepared, fastest
from peers.frameworks.onnx_model import OnnxModel, onnx_models
from peers.models import ModelProblem
from tf_lstm_ops._arrays import Array


def build(
    row: Row,
    problem: Problem | ModelProblem,
    threads: int,
    int8: bool = False,
    precision: str = "f32",
) -> Prepared:
    """Makes a call of OpenVINO.

    Args:
      row: the row.
      problem: its data.
      threads: the number of threads.
      int8: whether NNCF quantizes the model. Rows of one layer without lengths only.
      precision: of the products; empty: OpenVINO chooses it by the processor.

    Returns:
      The call to time.
    """
    core = openvino.Core()
    settings: dict[str, object] = {
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    if precision:
        settings["INFERENCE_PRECISION_HINT"] = precision
    models = onnx_models(row, problem)
    if int8:
        return _compiled(core, *_quantized(core, models[0]), models[0], settings)
    return fastest(
        _compiled(core, core.read_model(m.content), m.inputs, m, settings) for m in models
    )


def _compiled(
    core: openvino.Core,
    graph: openvino.Model,
    inputs: Mapping[str, Array],
    model: OnnxModel,
    settings: dict[str, object],
) -> Prepared:
    compiled = core.compile_model(graph, "CPU", settings)
    request = compiled.create_infer_request()
    for name, array in inputs.items():
        request.set_tensor(name, openvino.Tensor(array))

    def call() -> object:
        request.infer()
        return request.get_output_tensor().data

    return Prepared(call, model.results)


def _quantized(core: openvino.Core, model: OnnxModel) -> tuple[openvino.Model, dict[str, Array]]:
    """Quantizes an LSTM so that the CPU plugin computes it in int8; returns also its inputs.

    The plugin does so if the weights are constants, which the conversion from ONNX computes from
    others, and if h is quantized, which NNCF does only with an h that is an input. The plugin has
    one scale for x and h. So the data for calibration have the same range for both.
    """
    import nncf

    graph = core.read_model(model.content)
    inputs = dict(model.inputs)
    (node,) = (n for n in graph.get_ordered_ops() if n.get_type_name() == "LSTMSequence")
    rng, bound = np.random.default_rng(0), float(np.abs(inputs["x"]).max())
    data = {"x": inputs["x"]}
    for name, port, largest in (("h", 1, bound), ("c", 2, 1.0)):
        shape = tuple(node.input(port).get_partial_shape().get_max_shape())
        state = opset.parameter(shape, np.float32, name)
        state.output(0).set_names({name})
        node.input(port).replace_source_output(state.output(0))
        graph.add_parameters([state])
        inputs[name] = np.zeros(shape, np.float32)
        data[name] = rng.uniform(-largest, largest, shape).astype(np.float32)
    data["h"].flat[:2] = -bound, bound
    graph.validate_nodes_and_infer_types()
    passes = Manager()
    passes.register_pass(ConstantFolding())
    passes.run_passes(graph)
    return nncf.quantize(graph, nncf.Dataset([data]), subset_size=1), inputs
