"""What a judge asks of a program: an ONNX model with one recurrent node, inputs, and outputs.

Each program computes a case, refuses it, or is wrong.
"""

import dataclasses
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from judges.oracle import Array
from tf_lstm_ops.inference import Session

RIGHT, REFUSED, WRONG = "right", "refused", "wrong"
# A float32 program against float64, relative to the largest element: tens of roundings (6e-8 each)
# in sums of up to 50 terms, over up to 11 steps. The largest error of a right result is 4e-7 in
# sessions and in ONNX Runtime. A wrong option of a node changes results by 5e-4 and more.
TOLERANCE = 2e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A model and its results.

    Attributes:
      name: unique in a suite.
      model: the model.
      calls: inputs by name, and expected outputs in the order of the model's outputs.
      input_axes: the axis of the batch by the names of inputs.
      output_axes: the axis of the batch of each output.
      constants: names of the inputs that are weights.
      named: what the only recurrent node gets, by the names of the specification.
    """

    name: str
    model: onnx.ModelProto
    calls: list[tuple[dict[str, Array], list[Array]]]
    input_axes: dict[str, int]
    output_axes: list[int]
    constants: frozenset[str] = frozenset()
    named: dict[str, Array] = dataclasses.field(default_factory=dict)

    @property
    def node(self) -> onnx.NodeProto:
        """The recurrent node."""
        return next(n for n in self.model.graph.node if n.op_type in ("LSTM", "GRU", "RNN"))

    @property
    def attributes(self) -> dict[str, Any]:
        """Those of the node, with text instead of bytes."""
        return {a.name: as_text(helper.get_attribute_value(a)) for a in self.node.attribute}


def as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [as_text(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


def of_node(
    name: str,
    model: onnx.ModelProto,
    inputs: dict[str, Array],
    outputs: list[Array],
    named: dict[str, Array],
    constants: frozenset[str] = frozenset(),
) -> Case:
    """A case with one call of one node, the axes of whose batch follow from its layout."""
    node = next(n for n in model.graph.node if n.op_type in ("LSTM", "GRU", "RNN"))
    layout = any(a.name == "layout" and a.i == 1 for a in node.attribute)
    input_axes = {k: 0 if layout or x.ndim == 1 else 1 for k, x in inputs.items()}
    output_axes = [0 if layout else y.ndim - 2 for y in outputs]
    return Case(name, model, [(inputs, outputs)], input_axes, output_axes, constants, named)


class Verdict(NamedTuple):
    """What a program made of a case: RIGHT, REFUSED or WRONG, and the reason or the difference."""

    kind: str
    text: str = ""


def errors(got: list[Array], want: list[Array]) -> str:
    """How results differ from what is expected; empty: they do not."""
    if len(got) != len(want):
        return f"{len(got)} outputs, not {len(want)}"
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        if a.shape != b.shape:
            return f"output {k} is {list(a.shape)}, not {list(b.shape)}"
        scale = max(1.0, float(np.abs(b).max(initial=0.0)))
        difference = float(np.abs(a - b).max(initial=0.0))
        if not difference <= TOLERANCE * scale:
            place = np.unravel_index(np.argmax(np.abs(a - b)), a.shape)
            where = "[" + ", ".join(map(str, place)) + "]"
            return f"output {k} {where} is {a[place]:.7g}, not {b[place]:.7g}"
    return ""


def verdict(case: Case, program: Callable[[Case], list[list[Array]]]) -> Verdict:
    """What a program makes of a case."""
    try:
        results = program(case)
    except Exception as error:  # each program has classes of its own
        return Verdict(REFUSED, f"{error}")
    for (_, want), got in zip(case.calls, results, strict=True):
        if text := errors(got, want):
            return Verdict(WRONG, text)
    return Verdict(RIGHT)


def ours(case: Case) -> list[list[Array]]:
    """The outputs of `Session.from_onnx`, in the axes of the file."""
    first, _ = case.calls[0]
    fixed = {name: first[name] for name in case.constants}
    session = Session.from_onnx(case.model, constants=fixed, check=False)
    return [in_session(session, case, *call) for call in case.calls]


def in_session(
    session: Session, case: Case, inputs: dict[str, Array], want: list[Array]
) -> list[Array]:
    """One call. A session has the batch first, and may leave out axes of size 1."""
    given = {}
    for spec in session.inputs:
        name = spec.name or next(iter(inputs))
        x = np.moveaxis(inputs[name], case.input_axes[name], 0)
        given[name] = x.squeeze(1) if x.ndim == len(spec.shape) + 1 else x
    found = session(given if len(given) > 1 else next(iter(given.values())))
    results = [*found.values()] if isinstance(found, Mapping) else [found]
    return [
        np.moveaxis(got.reshape(np.moveaxis(expected, axis, 0).shape), 0, axis)
        for got, expected, axis in zip(results, want, case.output_axes, strict=True)
    ]


def onnx_runtime(case: Case) -> list[list[Array]]:
    """The outputs of ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    data = case.model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return [list(session.run(None, inputs)) for inputs, _ in case.calls]


def openvino(case: Case) -> list[list[Array]]:
    """The outputs of OpenVINO on the CPU, in float32."""
    import openvino as ov

    core = ov.Core()
    model = core.read_model(case.model.SerializeToString())
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = core.compile_model(model, "CPU", options)
    known = {name for each in compiled.inputs for name in each.names}  # without those it ignores
    results = []
    for inputs, _ in case.calls:
        found = compiled({name: x for name, x in inputs.items() if name in known})
        results.append([np.array(found[k]) for k in range(len(compiled.outputs))])
    return results


def tract(case: Case) -> list[list[Array]]:
    """The outputs of tract, which gets the sizes of each call."""
    import tract as package

    results = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "case.onnx")
        for inputs, _ in case.calls:
            onnx.save(of_sizes(case.model, inputs), path)
            model = package.onnx().load(path)
            given = [inputs[model.input_name(k)] for k in range(model.input_count())]
            found = model.into_model().into_runnable().run(given)
            results.append([each.to_numpy() for each in found])
    return results


def of_sizes(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> onnx.ModelProto:
    """The model with the sizes of the inputs instead of their names. With a name for the batch,
    tract ends the process."""
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    graph = fixed.graph
    sizes = {
        dim.dim_param: size
        for value in graph.input
        for dim, size in zip(axes(value), inputs[value.name].shape, strict=True)
    }
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in axes(value):
            if dim.dim_param in sizes.keys() - {""}:
                dim.dim_value = sizes[dim.dim_param]
    return fixed


def axes(value: onnx.ValueInfoProto) -> Any:
    return value.type.tensor_type.shape.dim
