"""A module that calls every op of the package, for the golden files."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import op_definitions, raw_ops

T, B, I, H = 3, 2, 2, 2  # noqa: E741
CELL = {"wci": [H], "wcf": [H], "wco": [H], "b": [4 * H], "w": [I + H, 4 * H]}
STATES = {"cs_prev": [B, H], "h_prev": [B, H]}
LAYERS = 2
# I == H, so all layers have the same number of parameters: that of two matrices and two biases of
# each gate.
PARAMS = LAYERS * (4 * H * (I + H) + 8 * H)


def fixed(seed: int, *shape: int) -> tf.Tensor:
    """Constants between -1 and 1."""
    return tf.constant(np.random.default_rng(seed).uniform(-1, 1, shape), tf.float32)


def _arguments(shapes: dict[str, list[int]]) -> dict[str, tf.Tensor]:
    return {name: fixed(k, *shape) for k, (name, shape) in enumerate(shapes.items())}


def block_cell(x: tf.Tensor) -> list[tf.Tensor]:
    given = _arguments({**CELL, **STATES})
    step = raw_ops.LSTMBlockCell(x=x[0], **given, use_peephole=True)
    sequence = {"x": x, "seq_len_max": tf.constant(T, tf.int64), **given}
    first = raw_ops.BlockLSTM(**sequence, use_peephole=True)
    second = raw_ops.BlockLSTMV2(**sequence)
    return [*step, *first, *second]


def block_cell_gradients(x: tf.Tensor) -> list[tf.Tensor]:
    """The gradient ops under the stock names, which a gradient tape does not call."""
    given = _arguments({**CELL, **STATES})
    step = raw_ops.LSTMBlockCell(x=x[0], **given, use_peephole=True)
    grads = {"cs_grad": fixed(20, B, H), "h_grad": fixed(21, B, H)}
    saved = {k: v for k, v in step._asdict().items() if k != "h"}
    inputs = {k: v for k, v in given.items()}
    found = [*raw_ops.LSTMBlockCellGrad(x=x[0], **inputs, **saved, **grads, use_peephole=True)]
    sequence = {"x": x, "seq_len_max": tf.constant(T, tf.int64), **given}
    grads = {"cs_grad": fixed(22, T, B, H), "h_grad": fixed(23, T, B, H)}
    for forward, backward in (
        (raw_ops.BlockLSTM, raw_ops.BlockLSTMGrad),
        (raw_ops.BlockLSTMV2, raw_ops.BlockLSTMGradV2),
    ):
        saved = forward(**sequence)._asdict()
        found += backward(**sequence, **saved, **grads, use_peephole=False)
    return found


def cudnn_rnn(x: tf.Tensor) -> list[tf.Tensor]:
    states = {"input_h": fixed(1, LAYERS, B, H), "input_c": fixed(2, LAYERS, B, H)}
    params = fixed(3, PARAMS)
    given = {"input": x, **states, "params": params}
    first = raw_ops.CudnnRNN(**given)
    second = raw_ops.CudnnRNNV2(**given)
    third = raw_ops.CudnnRNNV3(**given, sequence_lengths=[T, T - 1])
    return [*first[:3], *second[:3], *third[:3]]


def cudnn_params(x: tf.Tensor) -> list[tf.Tensor]:
    """The conversions of the parameters, there and back."""
    sizes = {"num_layers": LAYERS, "num_units": H, "input_size": I}
    params = fixed(3, PARAMS) * x[0, 0, 0]
    counts = {"num_params_weights": 8 * LAYERS, "num_params_biases": 8 * LAYERS}
    second = raw_ops.CudnnRNNParamsToCanonicalV2(**sizes, params=params, **counts)
    first = raw_ops.CudnnRNNParamsToCanonical(**sizes, params=params, num_params=8 * LAYERS)
    return [
        raw_ops.CudnnRNNCanonicalToParamsV2(**sizes, **second._asdict()),
        raw_ops.CudnnRNNCanonicalToParams(**sizes, **first._asdict()),
        *second.weights[:2],
    ]


def mpsgraph(x: tf.Tensor) -> list[tf.Tensor]:
    weights = {"recurrent_weight": [4 * H, H], "input_weight": [4 * H, I], "peephole": [4 * H]}
    result = raw_ops.MPSGraphLSTM(source=x, **_arguments(weights), training=True)
    return [result.output, result.cell]


DIALECTS = (block_cell, block_cell_gradients, cudnn_rnn, cudnn_params, mpsgraph)


class Ops(tf.Module):
    """Results of all dialects, and the gradients of their sum with respect to x."""

    @tf.function(input_signature=[tf.TensorSpec([T, B, I])])
    def results(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        found: dict[str, Any] = {}
        for dialect in DIALECTS:
            with tf.GradientTape() as tape:
                tape.watch(x)
                values = dialect(x)
                total = tf.add_n([tf.reduce_sum(value) for value in values])
            found[f"{dialect.__name__}_x_grad"] = tape.gradient(total, x)
            found |= {f"{dialect.__name__}_{k}": value for k, value in enumerate(values)}
        return found

    @tf.function(input_signature=[tf.TensorSpec([T, B, I])])
    def sizes(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """Sizes only: the random numbers of dropout may change."""
        state = tf.zeros([LAYERS, B, H])
        found = raw_ops.CudnnRNNV3(
            input=x,
            input_h=state,
            input_c=state,
            params=fixed(3, PARAMS),
            sequence_lengths=[T, T],
            dropout=0.5,
        )
        mask = op_definitions.function("CudnnRNNDropoutMask")(reserve_space=found.reserve_space)
        params = raw_ops.CudnnRNNParamsSize(
            num_layers=LAYERS, num_units=H, input_size=I, T=tf.float32, S=tf.int32
        )
        return {"dropout_mask": tf.size(mask), "params": params}
