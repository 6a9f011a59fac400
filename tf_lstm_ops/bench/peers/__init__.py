"""The peers. Each module has ``build(row, problem, threads, **options) -> Prepared``."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tf_lstm_ops.weights.arrays import Array


class Prepared(NamedTuple):
    """What a worker times.

    Attributes:
      call: does the row's task once; its result is ready when it returns.
      results: of what `call` returned, float arrays by name, those of cases.pieces and
        cases.gradient_pieces in a row of sequences. What a peer leaves out is not compared.
      repeats: how many of what the row names a call does; its time is divided by it.
    """

    call: Callable[[], Any]
    results: Callable[[Any], dict[str, Array]]
    repeats: int = 1


@dataclass(frozen=True)
class Peer:
    """A way to do the tasks.

    Attributes:
      label: the head of its column.
      module: below this package, or any other with a dot in its name.
      options: for the module's `build`.
      needs: modules that must be installed.
      pip: the arguments of pip that bring them.
      ours: whether its process imports tf_lstm_ops itself.
      threads: None, as many as the others have.
      rest_seconds: for how long its threads go on spinning after a call, at most.
      note: what its column does not say.
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

    def is_installed(self) -> bool:
        return all(importlib.util.find_spec(name) is not None for name in self.needs)


def _ours(label: str, module: str, threads: int | None = None, **options: Any) -> Peer:
    return Peer(label, module, options, ours=True, threads=threads)


PEERS: dict[str, Peer] = {
    "ours": _ours("ours", "keras_layer", ours=True),
    "ours-cudnn": _ours("our CudnnRNNV3", "cudnn"),
    "ours-block-cell": _ours("our block cell", "block_cell", ours=True),
    "ours-float32": _ours("ours, float32", "keras_layer", ours=True, dtype="float32"),
    "ours-one-thread": _ours("ours, 1 thread", "keras_layer", threads=1, ours=True),
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
    "openvino": Peer("OpenVINO", "openvino", needs=("onnx", "openvino"), pip="onnx openvino"),
    "jax": Peer("JAX", "jax", needs=("jax",), pip="jax"),
}
