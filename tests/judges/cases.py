"""What a judge asks of a program: an ONNX model with one recurrent node, inputs, and outputs.

Each program computes a case, refuses it, or is wrong.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from judges.oracle import Array
from tf_lstm_ops.inference import Session

RIGHT, REFUSED, WRONG = "right", "refused", "wrong"
# A float32 program against float64: tens of roundings (6e-8 each) in sums of up to 50 terms over up
# to 10 steps, of numbers of about 1. A wrong option of a node changes results by 1e-2 and more.
TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A model and its results.

    Attributes:
      name: unique in a suite.
      model: with one node LSTM, GRU or RNN.
      inputs: of the model, by name.
      outputs: expected, in the order of the model's outputs.
      named: what the node gets, by the names of the specification.
      constants: names of the inputs that are weights.
    """

    name: str
    model: onnx.ModelProto
    inputs: dict[str, Array]
    outputs: list[Array]
    named: dict[str, Array]
    constants: frozenset[str] = frozenset()

    @property
    def node(self) -> onnx.NodeProto:
        """The recurrent node."""
        return next(n for n in self.model.graph.node if n.op_type in ("LSTM", "GRU", "RNN"))

    @property
    def attributes(self) -> dict[str, Any]:
        """Those of the node, with text instead of bytes."""
        found = {a.name: helper.get_attribute_value(a) for a in self.node.attribute}
        return {
            name: [v.decode() for v in value]
            if name == "activations"
            else value.decode()
            if isinstance(value, bytes)
            else value
            for name, value in found.items()
        }


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


def verdict(case: Case, program: Callable[[Case], list[Array]]) -> Verdict:
    """What a program makes of a case."""
    try:
        got = program(case)
    except Exception as error:  # each program has classes of its own
        return Verdict(REFUSED, f"{error}")
    text = errors(got, case.outputs)
    return Verdict(WRONG, text) if text else Verdict(RIGHT)


def ours(case: Case) -> list[Array]:
    """The outputs of `Session.from_onnx`, in the axes of the file."""
    fixed = {name: case.inputs[name] for name in case.constants}
    session = Session.from_onnx(case.model, constants=fixed, check=False)
    batch = 0 if case.attributes.get("layout", 0) else 1
    given = {
        name: x if x.ndim == 1 else np.moveaxis(x, batch, 0)
        for name, x in case.inputs.items()
        if name not in case.constants
    }
    for spec in session.inputs:  # states without the axis of one direction
        if spec.name in given and given[spec.name].ndim == len(spec.shape) + 1:
            given[spec.name] = given[spec.name].squeeze(1)
    found = session(given if len(session.inputs) > 1 else next(iter(given.values())))
    results = [*found.values()] if isinstance(found, Mapping) else [found]
    # The session has the batch first, and may leave out axes of size 1.
    return [
        np.moveaxis(got.reshape(np.moveaxis(want, axis, 0).shape), 0, axis)
        for got, want in zip(results, case.outputs, strict=True)
        for axis in [0 if batch == 0 else want.ndim - 2]
    ]


def onnx_runtime(case: Case) -> list[Array]:
    """The outputs of ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    data = case.model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, case.inputs))
