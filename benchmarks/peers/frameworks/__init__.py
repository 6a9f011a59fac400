"""The peers: the implementations that are measured.

Each module has ``build(row, problem, threads, **options)``, which returns the call to time, a
`Prepared`.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tf_lstm_ops._arrays import Array

TRIALS = 20  # calls by which `fastest` chooses
# Relative to the largest element, as in runner. Rounding of weights to 8 significant bits, and of
# weights and activations to 8 bits with scales; a wrong gate or scale causes more than 0.2.
TOLERANCE_BFLOAT16, TOLERANCE_INT8 = 0.03, 0.1


class Prepared(NamedTuple):
    """The call that a worker times.

    Attributes:
      call: does the row's task; its result is ready when it returns.
      results: converts the return value of `call` to float32 arrays by name; in a row of sequences
        those of cases.compared_output and cases.compared_grads. Arrays that are missing are not
        compared.
      repeats: the number of times that a call does the row's task. The time is divided by it.
    """

    call: Callable[[], Any]
    results: Callable[[Any], dict[str, Array]]
    repeats: int = 1


def fastest(calls: Iterable[Prepared]) -> Prepared:
    """Chooses the fastest of several calls that compute the same.

    Args:
      calls: one or more.

    Returns:
      The one whose shortest time of some calls is the least.
    """

    def seconds(prepared: Prepared) -> float:
        prepared.call()
        times = []
        for _ in range(TRIALS):
            start = time.perf_counter()
            prepared.call()
            times.append(time.perf_counter() - start)
        return min(times)

    found = list(calls)
    return min(found, key=seconds) if found[1:] else found[0]


@dataclass(frozen=True)
class Peer:
    """An implementation of the tasks.

    Attributes:
      label: the head of its column.
      module: below this package, or any other with a dot in its name.
      options: for the module's `build`.
      needs: modules that must be installed.
      pip: the arguments of pip install that install them.
      ours: whether its process imports tf_lstm_ops itself.
      threads: the number of threads; None for the number of the run.
      rest_seconds: a pause after its calls in a round, so that its threads stop spinning.
      note: a remark on its results.
      tolerance: of its results, see runner.difference; None for that of the row.
    """

    label: str
    module: str
    options: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    pip: str = ""
    ours: bool = False
    threads: int | None = None
    rest_seconds: float = 0.005
    note: str = ""
    tolerance: float | None = None

    def is_installed(self) -> bool:
        """Whether the modules that it needs are installed.

        Returns:
          True if all of them are found.
        """
        return all(importlib.util.find_spec(name) is not None for name in self.needs)


def _ours(label: str, module: str, threads: int | None = None, **options: Any) -> Peer:
    return Peer(label, module, options, ours=True, threads=threads)


def _session(weights: str, tolerance: float) -> Peer:
    peer = _ours(f"our Session, {weights}", "session", weights=weights)
    return dataclasses.replace(peer, tolerance=tolerance)


PEERS: dict[str, Peer] = {
    "ours": _ours("ours", "keras_layer", ours=True),
    "ours-eager": _ours("ours, eager op", "eager_op"),
    "session": _ours("our Session", "session"),
    "session-bfloat16": _session("bfloat16", TOLERANCE_BFLOAT16),
    "session-int8": _session("int8", TOLERANCE_INT8),
    "ours-cudnn": _ours("our CudnnRNNV3", "cudnn"),
    "ours-block-cell": _ours("our block cell", "block_cell", ours=True),
    "ours-float32": _ours("ours, float32", "keras_layer", ours=True, dtype="float32"),
    "ours-one-thread": _ours("ours, 1 thread", "keras_layer", threads=1, ours=True),
    "ours-custom-loop": _ours("ours, custom loop", "keras_layer", ours=True, training=None),
    "ours-all-steps": _ours("our CudnnRNNV3, all steps", "cudnn", use_lengths=False),
    "keras": Peer("Keras", "keras_layer"),
    "keras-jit": Peer("Keras, XLA", "keras_layer", {"jit_compile": True}),
    "block-lstm-v2": Peer(
        "BlockLSTMV2",
        "block_lstm",
        note="In training only the output of stock BlockLSTMV2 is compared: its gradient is wrong.",
    ),
    "block-cell": Peer("LSTMBlockCell", "block_cell"),
    "torch": Peer(
        "PyTorch",
        "torch",
        needs=("torch",),
        pip="torch --index-url https://download.pytorch.org/whl/cpu",
    ),
    "onnxruntime": Peer(
        "ONNX Runtime",
        "onnxruntime",
        needs=("onnx", "onnxruntime"),
        pip="onnx onnxruntime",
        rest_seconds=0.1,
    ),
    "onnxruntime-int8": Peer(
        "ONNX Runtime, int8",
        "onnxruntime",
        {"int8": True},
        needs=("onnx", "onnxruntime"),
        pip="onnx onnxruntime",
        rest_seconds=0.1,
        note="ONNX Runtime's dynamic quantization leaves GRU in float32.",
        tolerance=TOLERANCE_INT8,
    ),
    "openvino": Peer("OpenVINO", "openvino", needs=("onnx", "openvino"), pip="onnx openvino"),
    "openvino-default": Peer(
        "OpenVINO, as installed",
        "openvino",
        {"precision": ""},
        needs=("onnx", "openvino"),
        pip="onnx openvino",
        note="As installed, OpenVINO takes bfloat16 on processors that multiply bfloat16.",
        tolerance=TOLERANCE_BFLOAT16,
    ),
    "openvino-int8": Peer(
        "OpenVINO, int8",
        "openvino",
        {"int8": True},
        needs=("onnx", "openvino", "nncf"),
        pip="onnx openvino nncf",
        note="OpenVINO's int8 has one scale for x and h. NNCF leaves a GRU with "
        "linear_before_reset, which is that of Keras and PyTorch, in float32.",
        tolerance=TOLERANCE_INT8,
    ),
    "tract": Peer(
        "tract, 1 thread",
        "tract",
        needs=("onnx", "tract"),
        pip="onnx tract",
        threads=1,
        note="tract's Python package computes on one thread.",
    ),
    "jax": Peer("JAX", "jax", needs=("jax",), pip="jax"),
}
