"""Times tf_lstm_ops beside what TensorFlow has on this machine; prints a Markdown table of ratios.

    python benchmarks/recurrent_layers.py [--repeat N]

Each row is one shape, [batch, time, input] with so many units. Peers take turns in one process, and
the least of N times counts. A ratio above 1 says how many times as long the peer takes.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np
import tensorflow as tf

import tf_lstm_ops

SHAPES = [(1, 100, 64, 64), (32, 50, 64, 128), (32, 100, 128, 256), (64, 30, 512, 512)]


def least_times(functions: Sequence[Callable[[], Any]], repeat: int) -> list[float]:
    """Seconds of the fastest call of each, taken in turns after one that does not count."""
    best = [float("inf")] * len(functions)
    for turn in range(repeat + 1):
        for n, function in enumerate(functions):
            start = time.perf_counter()
            function()
            if turn:
                best[n] = min(best[n], time.perf_counter() - start)
    return best


def steps(layer: Any, x: tf.Tensor) -> list[Callable[[], Any]]:
    """Inference, and gradients of all weights and of the input."""
    layer(x)

    @tf.function
    def forward() -> Any:
        return layer(x)

    @tf.function
    def gradients() -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(layer(x, training=True))
        return tape.gradient(loss, [x, *layer.trainable_variables])

    return [forward, gradients]


def against_keras(name: str, repeat: int) -> None:
    print(f"\nkeras.{name} beside keras.layers.{name}, milliseconds\n")
    print("| batch, time, input, units | forward | stock | ratio | training | stock | ratio |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for batch, length, inputs, units in SHAPES:
        x = tf.random.normal([batch, length, inputs])
        ours = steps(getattr(tf_lstm_ops.keras, name)(units), x)
        stock = steps(getattr(keras.layers, name)(units), x)
        cells = []
        for pair in zip(ours, stock, strict=True):
            mine, peer = least_times(pair, repeat)
            cells += [f"{mine * 1e3:.2f}", f"{peer * 1e3:.2f}", f"{peer / mine:.1f}"]
        print(f"| {batch}, {length}, {inputs}, {units} | {' | '.join(cells)} |", flush=True)


def along_lengths(repeat: int) -> None:
    """CudnnRNNV3 with lengths that sum up to a part of T * B: time should follow that part."""
    batch, length, inputs, units = 32, 100, 128, 256
    sizes = {"num_layers": 2, "num_units": units, "input_size": inputs}
    (size,) = tf_lstm_ops.raw_ops.CudnnRNNParamsSize(**sizes, T=tf.float32, S=tf.int32)
    params = tf.random.normal([size]) / units**0.5
    x, state = tf.random.normal([length, batch, inputs]), tf.zeros([2, batch, units])

    def run(lengths: np.ndarray) -> Callable[[], Any]:
        def call() -> Any:
            return tf.raw_ops.CudnnRNNV3(
                input=x, input_h=state, input_c=state, params=params, sequence_lengths=lengths
            )

        return call

    print(f"\nCudnnRNNV3, two layers, {batch}, {length}, {inputs}, {units}, by the lengths\n")
    print("| lengths | part of all steps | part of the time |\n| --- | --- | --- |")
    cases = {
        "all 100": np.full(batch, length),
        "1 to 100": np.linspace(1, length, batch).round(),
        "all 25": np.full(batch, length // 4),
        "one 100, others 10": np.r_[length, np.full(batch - 1, length // 10)],
    }
    cases = {name: lengths.astype(np.int32) for name, lengths in cases.items()}
    times = least_times([run(lengths) for lengths in cases.values()], repeat)
    for (name, lengths), seconds in zip(cases.items(), times, strict=True):
        print(f"| {name} | {lengths.sum() / (batch * length):.2f} | {seconds / times[0]:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeat", type=int, default=30, help="calls of each peer (default 30)")
    repeat = parser.parse_args().repeat
    info = tf_lstm_ops._library.cpu_info()
    print(f"TensorFlow {tf.__version__}, {info['instruction_set']}, {info['threads']} threads")
    for name in ("LSTM", "GRU"):
        against_keras(name, repeat)
    along_lengths(repeat)


if __name__ == "__main__":
    main()
