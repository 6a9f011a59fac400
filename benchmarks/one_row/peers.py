"""The peers by name, and what they make."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from one_row.cases import Case
from one_row.timing import Sample, sample_of

Array = np.ndarray
# Products of up to 4096 terms are summed in different orders, and the exponential functions of the
# libraries differ. In int8, weights and activations have 8 bits; a wrong gate causes more than 0.2.
BOUND, BOUND_INT8 = 1e-4, 0.1
_LARGE = ("square", "models")  # the groups in which weights of other types are measured
STEPS = ("units", "square", "models")  # the groups of single steps


class Prepared(NamedTuple):
    """A call of a peer.

    Attributes:
      label: how the peer is called, where there are several ways.
      x: float32 [1, T, I], from which a call reads its input.
      call: computes the output. It keeps the states if the case does. The first call begins with
        zeros.
      output: the output of a call as an array of T · O elements.
      sample: measures a round; None: `call` is timed.
    """

    label: str
    x: Array
    call: Callable[[], Any]
    output: Callable[[Any], Array] = np.asarray
    sample: Sample | None = None

    def measured(self) -> Sample:
        return self.sample or sample_of(self.call)


@dataclass(frozen=True)
class Peer:
    """An implementation.

    Attributes:
      heading: of its column.
      module: in this package.
      function: of the module. It takes the case, its Keras model and an existing folder for files,
        and returns a list of Prepared, of which the fastest one counts.
      groups: the groups of cases for which it is measured.
      needs: modules that must be installed.
      options: for the function.
      bound: of the difference of an output, which is within [-1, 1], from that of the Keras model.
    """

    heading: str
    module: str
    function: str
    groups: tuple[str, ...] = STEPS
    needs: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    bound: float = BOUND

    @property
    def is_installed(self) -> bool:
        return all(importlib.util.find_spec(name) is not None for name in self.needs)

    def prepare(self, case: Case, model: keras.Model, folder: Path) -> list[Prepared]:
        module = importlib.import_module(f"one_row.{self.module}")
        return getattr(module, self.function)(case, model, folder, **self.options)


_ALL = (*STEPS, "sequences")
PEERS = {
    "predict": Peer("model.predict", "tensorflow_peers", "predict"),
    "function": Peer("tf.function", "tensorflow_peers", "function"),
    "eager": Peer("eager layers", "tensorflow_peers", "eager", ("units",)),
    "op": Peer("eager op", "tensorflow_peers", "eager_op", ("units",)),
    "session": Peer("Session", "session_peers", "session", _ALL),
    "c": Peer("C", "session_peers", "c_program"),
    "session-int8": Peer(
        *("Session, int8", "session_peers", "session", _LARGE),
        options={"weights": "int8"},
        bound=BOUND_INT8,
    ),
    "c-int8": Peer(*("C, int8", "session_peers", "c_program", _LARGE), options={"weights": "int8"}),
    "c-bfloat16": Peer(
        *("C, bfloat16", "session_peers", "c_program", _LARGE), options={"weights": "bfloat16"}
    ),
    "onnxruntime": Peer(
        "ONNX Runtime", "runtime_peers", "onnxruntime", _ALL, ("onnx", "onnxruntime")
    ),
    "onnxruntime-c": Peer(
        *("ONNX Runtime, C", "onnxruntime_c", "onnxruntime_c"), needs=("onnx", "onnxruntime")
    ),
    "openvino": Peer("OpenVINO", "runtime_peers", "openvino", _ALL, ("onnx", "openvino")),
    "litert": Peer("LiteRT", "runtime_peers", "litert", needs=("ai_edge_litert",)),
}
