"""Other runtimes: ONNX Runtime, OpenVINO and LiteRT, called from Python.

Where states are kept, a call reads them from one set of arrays and writes them to another one, and
the sets take turns. So no call copies states, except in LiteRT, whose interface copies.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from one_row.cases import Case
from one_row.onnx_graph import OnnxGraph, onnx_graph
from one_row.peers import Prepared

Array = np.ndarray


def _threads(case: Case) -> tuple[int, ...]:
    """The numbers of threads to choose the best from."""
    return (1,) if case.keeps_states else (1, 2)


def _label(*words: str, threads: int, case: Case) -> str:
    number = [] if case.keeps_states else [f"{threads} thread" + "s" * (threads > 1)]
    return ", ".join([*words, *number])


def _two_sets(graph: OnnxGraph) -> list[dict[str, Array]]:
    """Two sets of states, by the names of the states."""
    return [{n: np.zeros(s, np.float32) for n, s in graph.shapes.items()} for _ in range(2)]


def onnxruntime(case: Case, model: keras.Model, _folder: Path) -> list[Prepared]:
    """ONNX Runtime with IO binding, and without."""
    import onnxruntime

    graph = onnx_graph(case, model)
    found = []
    for threads in _threads(case):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            graph.content, options, providers=["CPUExecutionProvider"]
        )
        for label, make in (("IO binding", _bound_run), ("plain run", _plain_run)):
            label = _label(label, threads=threads, case=case)
            found.append(make(session, graph, case)._replace(label=label))
    return found


def _plain_run(session: Any, graph: OnnxGraph, case: Case) -> Prepared:
    x = np.zeros((case.time, 1, case.inputs), np.float32)
    names = list(dict.fromkeys([graph.output, *(new for _, new in graph.states)]))
    states = [(old, names.index(new)) for old, new in graph.states]
    feeds = {"x": x, **_two_sets(graph)[0]}

    def call() -> Array:
        results = session.run(names, feeds)
        for old, index in states:
            feeds[old] = results[index]
        return results[0]

    return Prepared("", x.reshape(1, case.time, -1), call)


def _bound_run(session: Any, graph: OnnxGraph, case: Case) -> Prepared:
    x = np.zeros((case.time, 1, case.inputs), np.float32)
    y = np.zeros((case.time, case.layers[-1].size), np.float32)
    sets = _two_sets(graph)
    is_state = graph.output in [new for _, new in graph.states]
    shapes = {output.name: output.shape for output in session.get_outputs()}
    turns = []
    for before, after in ((sets[0], sets[1]), (sets[1], sets[0])):
        binding = session.io_binding()
        outputs = {new: after[old] for old, new in graph.states}
        if not is_state:
            outputs[graph.output] = y.reshape(shapes[graph.output])
        for name, array in {"x": x, **before}.items():
            binding.bind_input(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
        for name, array in outputs.items():
            binding.bind_output(name, "cpu", 0, np.float32, array.shape, array.ctypes.data)
        turns.append((binding, outputs))
    run, turn = session.run_with_iobinding, itertools.cycle(turns)

    def call() -> Array:
        binding, outputs = next(turn)  # a binding does not keep its arrays alive; `turns` does
        run(binding)
        return outputs[graph.output]

    return Prepared("", x.reshape(1, case.time, -1), call)


def openvino(case: Case, model: keras.Model, _folder: Path) -> list[Prepared]:
    """OpenVINO with the latency hint; requests are reused."""
    import openvino

    graph = onnx_graph(case, model)
    core = openvino.Core()
    found = []
    for threads in _threads(case):
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",  # otherwise bfloat16 on processors with AMX
        }
        compiled = core.compile_model(core.read_model(graph.content), "CPU", settings)
        label = _label(threads=threads, case=case)
        found.append(_openvino_run(openvino, compiled, graph, case)._replace(label=label))
    return found


def _openvino_run(openvino: Any, compiled: Any, graph: OnnxGraph, case: Case) -> Prepared:
    x = np.zeros((case.time, 1, case.inputs), np.float32)
    arrays = _two_sets(graph)
    sets = [
        {name: openvino.Tensor(array, shared_memory=True) for name, array in states.items()}
        for states in arrays
    ]
    tensor = openvino.Tensor(x, shared_memory=True)
    turns = []
    for before, after in ((sets[0], sets[1]), (sets[1], sets[0])):
        request = compiled.create_infer_request()
        request.set_tensor("x", tensor)
        for old, new in graph.states:
            request.set_tensor(old, before[old])
            request.set_tensor(new, after[old])
        turns.append((request, request.get_tensor(graph.output), arrays))
    turn = itertools.cycle(turns)

    def call() -> Any:
        request, output, _ = next(turn)  # a tensor does not keep its array alive; `turns` does
        request.infer(share_outputs=True)  # which copies no output
        return output

    return Prepared("", x.reshape(1, case.time, -1), call, lambda output: output.data)


def litert(case: Case, model: keras.Model, folder: Path) -> list[Prepared]:
    """LiteRT on the file that tf_lstm_ops.export.tflite writes."""
    from ai_edge_litert.interpreter import Interpreter

    from tf_lstm_ops import export

    path = folder / "model.tflite"
    export.tflite(model, path, stateful=True)
    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    return [_litert_run(interpreter, case)]


def _litert_run(interpreter: Any, case: Case) -> Prepared:
    signature = interpreter.get_signature_runner()
    inputs = {name: d["index"] for name, d in signature.get_input_details().items()}
    outputs = {name: d["index"] for name, d in signature.get_output_details().items()}
    states = [(inputs[name], outputs[name]) for name in inputs if name in outputs]
    (x_index,) = (index for name, index in inputs.items() if name not in outputs)
    (y_index,) = (index for name, index in outputs.items() if name not in inputs)
    for index, _ in states:
        shape = interpreter.get_tensor(index).shape
        interpreter.set_tensor(index, np.zeros(shape, np.float32))
    x = np.zeros((1, case.time, case.inputs), np.float32)
    set_tensor: Callable[[int, Array], None] = interpreter.set_tensor
    get_tensor: Callable[[int], Array] = interpreter.get_tensor

    def call() -> Array:
        set_tensor(x_index, x)
        interpreter.invoke()
        for old, new in states:
            set_tensor(old, get_tensor(new))
        return get_tensor(y_index)

    return Prepared("", x, call)
