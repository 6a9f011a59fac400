"""The time of bfloat16 beside float32, of one layer: inference and a training step.

    python benchmarks/bfloat16.py [inference] [training]

Prints a line for each size of the benchmark's rows: the time in float32 in milliseconds, and the
times with `mixed_bfloat16` and with `bfloat16` divided by it. The types take turns. The fastest
call of each counts. $TF_LSTM_OPS_SIMD selects the instruction set.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import keras
import tensorflow as tf

import tf_lstm_ops
from peers.rows import ROWS

POLICIES = ("float32", "mixed_bfloat16", "bfloat16")
SECONDS = 1.5  # of one line
Size = tuple[str, int, int, int, int]  # cell, batch, time, inputs, units


def sizes(task: str) -> list[Size]:
    """Those of rows of a single layer, each once."""
    rows = [row for row in ROWS if row.task == task and row.layers == row.directions == 1]
    return list(dict.fromkeys((r.cell, r.batch, r.time, r.inputs, r.units) for r in rows))


def call(task: str, size: Size, policy: str) -> Callable[[], object]:
    """A call of the layer, or one with the gradients of its input and weights."""
    cell, batch, steps, inputs, units = size
    make = {"lstm": tf_lstm_ops.keras.LSTM, "gru": tf_lstm_ops.keras.GRU}[cell]
    layer = make(
        units,
        return_sequences=True,
        recurrent_initializer="glorot_uniform",  # TensorFlow's QR has no bfloat16
        dtype=keras.DTypePolicy(policy),
    )
    x = tf.cast(tf.random.normal((batch, steps, inputs)), layer.compute_dtype)
    grad = tf.cast(tf.random.normal((batch, steps, units)), layer.compute_dtype)
    layer(x)
    weights = [variable.value for variable in layer.trainable_variables]

    def train() -> list[tf.Tensor]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
        return tape.gradient(y, [x, *weights], output_gradients=grad)

    return tf.function(train if task == "training" else lambda: layer(x))


def measure(task: str, size: Size) -> list[float]:
    calls = [call(task, size, policy) for policy in POLICIES]
    for run in calls * 2:
        run()
    best = [float("inf")] * len(calls)
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        for k, run in enumerate(calls):
            begin = time.perf_counter()
            run()
            best[k] = min(best[k], time.perf_counter() - begin)
    return best


def main() -> None:
    for task in sys.argv[1:] or ("inference", "training"):
        for size in sizes(task):
            cell, batch, steps, inputs, units = size
            full, mixed, narrow = measure(task, size)
            name = f"{task}, {cell} N{batch} T{steps} I{inputs} H{units}"
            print(
                f"{name:45} {full * 1e3:9.3f} ms   {mixed / full:.2f}   {narrow / full:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
