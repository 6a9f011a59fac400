"""Writes the files that later versions must read: ``python write_models.py FOLDER``.

Run once for a release, with the oldest TensorFlow and Keras that it supports. FOLDER is named after
the release.

* ``ops``: a SavedModel of the raw ops and their gradients, internal ops among them.
* ``layers``: a SavedModel of Keras layers; ``layers.keras``: the same model as Keras saves it.
* ``results.npz``: what they return for the inputs in it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops import raw_ops
from tf_lstm_ops.keras import GRU, LSTM

T, B, I, H = 3, 2, 2, 2  # noqa: E741
SIZES = {"wci": [H], "wcf": [H], "wco": [H], "b": [4 * H], "w": [I + H, 4 * H]}
STATES = {"cs_prev": [B, H], "h_prev": [B, H]}


def fixed(seed: int, *shape: int) -> tf.Tensor:
    return tf.constant(np.random.default_rng(seed).uniform(-1, 1, shape), tf.float32)


def arguments(shapes: dict[str, list[int]]) -> dict[str, tf.Tensor]:
    return {name: fixed(k, *shape) for k, (name, shape) in enumerate(shapes.items())}


def block_cell(x: tf.Tensor) -> list[Any]:
    shared = arguments({**SIZES, **STATES})
    step = raw_ops.LSTMBlockCell(x=x[0], **shared, use_peephole=True)
    sequence = {"x": x, "seq_len_max": tf.constant(T, tf.int64), **shared}
    return [
        *(step.h, step.ci),
        raw_ops.BlockLSTM(**sequence, use_peephole=True).h,
        raw_ops.BlockLSTMV2(**sequence).h,
    ]


def cudnn_rnn(x: tf.Tensor) -> list[Any]:
    sizes = {"num_layers": 2, "num_units": H, "input_size": I}
    params = fixed(3, 2 * (4 * H * (I + H) + 8 * H))  # I == H: both layers are of one size
    result = raw_ops.CudnnRNNV3(
        input=x,
        input_h=fixed(1, 2, B, H),
        input_c=fixed(2, 2, B, H),
        params=params,
        sequence_lengths=[T, T - 1],
    )
    counts = {"num_params_weights": 16, "num_params_biases": 16}
    canonical = raw_ops.CudnnRNNParamsToCanonicalV2(**sizes, params=params, **counts)
    again = raw_ops.CudnnRNNCanonicalToParamsV2(**sizes, **canonical._asdict())
    size = raw_ops.CudnnRNNParamsSize(**sizes, T=tf.float32, S=tf.int32)
    return [result.output, result.output_c, again, tf.cast(size, tf.float32)]


def mpsgraph(x: tf.Tensor) -> list[Any]:
    weights = {"recurrent_weight": [4 * H, H], "input_weight": [4 * H, I], "peephole": [4 * H]}
    result = raw_ops.MPSGraphLSTM(source=x, **arguments(weights), training=True)
    return [result.output, result.cell]


def layers() -> keras.Model:
    def values(seed: int) -> Any:
        return lambda shape, dtype=None: fixed(seed, *shape)

    model = keras.Sequential(
        [
            keras.Input((None, I)),
            keras.layers.Masking(),
            LSTM(H, use_peephole=True, cell_clip=0.5, return_sequences=True),
            GRU(H),
        ]
    )
    model.set_weights([values(k)(w.shape) for k, w in enumerate(model.weights)])
    return model


class Ops(tf.Module):
    """Results of all dialects, and the gradients of their sum by x."""

    @tf.function(input_signature=[tf.TensorSpec([T, B, I])])
    def results(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        found = {}
        for dialect in (block_cell, cudnn_rnn, mpsgraph):
            with tf.GradientTape() as tape:
                tape.watch(x)
                values = dialect(x)
                total = tf.add_n([tf.reduce_sum(value) for value in values])
            found[f"{dialect.__name__}_x_grad"] = tape.gradient(total, x)
            found |= {f"{dialect.__name__}_{k}": value for k, value in enumerate(values)}
        return found


def main(folder: Path) -> None:
    x = fixed(0, T, B, I)
    ops, model = Ops(), layers()
    tf.saved_model.save(ops, folder / "ops")
    model.save(folder / "layers.keras")
    exported = tf.Module()
    exported.serve = tf.function(model, input_signature=[tf.TensorSpec([None, None, I])])
    exported.model = model
    tf.saved_model.save(exported, folder / "layers")
    results = {"x": x, "layers": model(x), **ops.results(x)}
    np.savez_compressed(folder / "results.npz", **{k: v.numpy() for k, v in results.items()})


if __name__ == "__main__":
    main(Path(sys.argv[1]))
