"""Calls of TensorFlow's CudnnRNNV3 and of layers, and what tests see of them."""

from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import raw_ops

B, T, I, H = 3, 5, 3, 4  # noqa: E741
# Sums of some ten products of numbers of size one, in another order.
TOLERANCE = 1e-5
MASKS = {
    "none": None,
    "right": [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]],
    "holes": [[1, 0, 1, 0, 1], [0, 1, 1, 0, 0], [1, 1, 0, 0, 1]],
    "empty": [[0, 0, 0, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 0, 0]],
}


def ops_in(function: Any) -> set[str]:
    """The types of the ops of a concrete function."""
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
    return {node.op for node in nodes}


def is_cudnn(types: set[str]) -> bool:
    """Whether an op of TensorFlow's name computes, and nothing else of ours."""
    return "CudnnRNNV3" in types and not any(t.startswith("TfLstmOps>") for t in types)


def results(layer: Any, x: Any, mask: Any) -> list[np.ndarray]:
    """The outputs of a call, and the gradients of the input and the weights."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        outputs = tf.nest.flatten(layer(x, mask=mask))
        loss = tf.add_n([tf.reduce_sum(o * o) for o in outputs])
    return [*outputs, *tape.gradient(loss, [x, *layer.trainable_variables])]


def assert_close(got: list[Any], want: list[Any]) -> None:
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=0, atol=TOLERANCE)


def arguments(
    rng: np.random.Generator, mode: str, dtype: str = "float32", **options: Any
) -> dict[str, Any]:
    """Of CudnnRNNV3: two layers, both directions."""
    size = raw_ops.CudnnRNNParamsSize(
        num_layers=2, num_units=H, input_size=I, T=dtype, S=tf.int32, rnn_mode=mode,
        direction="bidirectional", num_proj=options.get("num_proj", 0),
    )  # fmt: skip

    def draw(*shape: int) -> tf.Tensor:
        return tf.constant(rng.normal(size=shape), dtype)

    time_major = options.get("time_major", True)
    state = (4, B) if time_major else (B, 4)
    return {
        "input": draw(T, B, I) if time_major else draw(B, T, I),
        "input_h": draw(*state, options.get("num_proj") or H),
        "input_c": draw(*state, H) if mode == "lstm" else tf.zeros([], dtype),
        "params": draw(int(size[0])),
        "rnn_mode": mode,
        "direction": "bidirectional",
        **options,
    }


def both_passes(version: str, given: dict[str, Any]) -> list[Any]:
    """The results of an op and of its gradient op, without the reserve."""
    found = getattr(raw_ops, f"CudnnRNN{version}")(**given, is_training=True)
    names = ("output", "output_h", "output_c")
    forward = {name: getattr(found, name) for name in names}
    grads = {f"{name}_backprop": tf.sin(value) for name, value in forward.items()}
    saved = {"reserve_space": found.reserve_space}
    if version:
        saved["host_reserved"] = found.host_reserved
    backward = getattr(raw_ops, f"CudnnRNNBackprop{version}")
    return [*forward.values(), *backward(**given, **forward, **grads, **saved)]
