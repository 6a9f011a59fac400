"""Times a call beside other processes that keep the processors busy; prints a Markdown table.

    python benchmarks/neighbours.py [--processes N] [--repeat N]

N processes that only count, pinned to nothing, share the processors with a call on as many threads
as there are processors, P. A fair share of the system is P of the P + N threads that want to run: a
call takes (P + N) / P times as long as alone, twice as long with two and two. Threads that wait for
each other lose more than that, since they wait for one that is not running, too; a call on fewer
threads, or one whose neighbours the system interrupts for it, loses less.

Each peer has a process of its own, first alone and then beside the neighbours.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

# name: batch, time, units, whether it trains.
ROWS = {
    "inference, N1 H128 T100": (1, 100, 128, False),
    "training, N32 H128 T100": (32, 100, 128, True),
}
PEERS = ("tf_lstm_ops", "keras", "torch")
MAX_SECONDS = 20  # of one measurement


def keras_call(module: Any, batch: int, length: int, units: int, trains: bool) -> Callable[[], Any]:
    import tensorflow as tf

    layer = module.LSTM(units)
    x = tf.random.normal([batch, length, units])
    layer(x)

    @tf.function
    def forward() -> Any:
        return layer(x)

    @tf.function
    def gradients() -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(x, training=True))
        return tape.gradient(loss, layer.trainable_variables)

    return gradients if trains else forward


def torch_call(batch: int, length: int, units: int, trains: bool) -> Callable[[], Any]:
    import torch

    torch.set_num_threads(processors())
    layer = torch.nn.LSTM(units, units, batch_first=True)
    x = torch.randn(batch, length, units)

    def forward() -> Any:
        with torch.inference_mode():
            return layer(x)[0][:, -1]

    def gradients() -> Any:
        loss = layer(x)[0][:, -1].sum()
        return torch.autograd.grad(loss, list(layer.parameters()))

    return gradients if trains else forward


def make_call(peer: str, row: tuple[int, int, int, bool]) -> Callable[[], Any]:
    if peer == "torch":
        return torch_call(*row)
    import keras

    import tf_lstm_ops

    return keras_call(tf_lstm_ops.keras if peer == "tf_lstm_ops" else keras.layers, *row)


def processors() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        time.sleep(0.5)  # until they run
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def times(call: Callable[[], Any], repeat: int) -> np.ndarray:
    """Milliseconds of each call."""
    found = []
    end = time.perf_counter() + MAX_SECONDS
    while len(found) < repeat and time.perf_counter() < end:
        start = time.perf_counter()
        call()
        found.append(1e3 * (time.perf_counter() - start))
    return np.array(found)


def measure(peer: str, name: str, count: int, repeat: int) -> None:
    """Prints the row of a peer."""
    call = make_call(peer, ROWS[name])
    times(call, 10)
    alone = times(call, repeat)
    with neighbours(count):
        beside = times(call, repeat)
    cells = [f"{np.median(a):.2f} / {np.percentile(a, 90):.2f}" for a in (alone, beside)]
    ratios = [np.median(beside) / np.median(alone)]
    ratios += [np.percentile(beside, 90) / np.percentile(alone, 90)]
    print("|", " | ".join([name, peer, *cells, " / ".join(f"{r:.1f}" for r in ratios)]), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--processes", type=int, default=2, help="busy neighbours (default 2)")
    parser.add_argument("--repeat", type=int, default=300, help="calls at most (default 300)")
    parser.add_argument("--row", choices=ROWS, help=argparse.SUPPRESS)
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peer:
        measure(args.peer, args.row, args.processes, args.repeat)
        return
    share = (processors() + args.processes) / processors()
    print(f"{processors()} processors, {args.processes} busy neighbours; fair: {share:.1f} times\n")
    print("| | | alone, ms, median / 90th percentile | beside neighbours | times as long |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    options = ["--processes", str(args.processes), "--repeat", str(args.repeat)]
    for name in ROWS:
        for peer in (p for p in PEERS if importlib.util.find_spec(p)):
            one = [sys.executable, __file__, *options, "--row", name, "--peer", peer]
            subprocess.run(one, check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
