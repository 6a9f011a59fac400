"""The time of a recurrent layer of Keras on PyTorch, without and with accelerate().

    python benchmarks/keras_on_torch.py [--threads 1] [--seconds 2]

Prints a table in Markdown. Each row is a layer with return_sequences in float32. Its columns are
the forward and the backward pass, with respect to the weights and the input, and train_on_batch of
a model of the layer and a Dense. The peers take turns; the fastest call of each counts. torch.nn is
the layer of PyTorch itself, which has other weights. The last columns are the megabytes that the
forward pass saves.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"
import keras
import numpy as np
import torch

from tf_lstm_ops.keras import accelerate
from tf_lstm_ops.keras.acceleration import without_acceleration

SIZES = ((32, 100, 16, 128), (64, 50, 256, 256), (128, 40, 56, 128), (32, 24, 19, 32))
Step = Callable[[], object]


def layer_step(layer: Any, weights: Sequence[torch.Tensor], x: torch.Tensor) -> Step:
    """A call that computes the output and its derivatives."""

    def step() -> object:
        y = layer(x)
        y = y[0] if isinstance(y, tuple) else y
        return torch.autograd.grad(y.sum(), [x, *weights])

    return step


def training_step(kind: str, sizes: Sequence[int]) -> Step:
    """A call of train_on_batch."""
    rows, steps, inputs, units = sizes
    layer = getattr(keras.layers, kind)(units, return_sequences=True)
    model = keras.Sequential([keras.Input((steps, inputs)), layer, keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    x = np.random.default_rng(0).normal(size=(rows, steps, inputs)).astype("float32")
    y = np.zeros((rows, steps, 1), "float32")
    return lambda: model.train_on_batch(x, y)


def of_keras(step: Step) -> Step:
    """The same call without accelerate()."""

    def run() -> object:
        with without_acceleration():
            return step()

    return run


def best(steps: Sequence[Step], seconds: float) -> list[float]:
    """The milliseconds of the fastest call of each."""
    for step in steps:
        step()
    least, end = [np.inf] * len(steps), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for k, step in enumerate(steps):
            start = time.perf_counter()
            step()
            least[k] = min(least[k], 1e3 * (time.perf_counter() - start))
    return least


def saved_megabytes(step: Step, own: Sequence[torch.Tensor]) -> float:
    """What the forward pass keeps for the backward pass, without `own` tensors."""
    found = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        step()
    for tensor in own:
        found.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(found.values()) / 1e6


def row(kind: str, sizes: Sequence[int], seconds: float) -> str:
    """A line of the table."""
    rows, steps, inputs, units = sizes
    x = torch.randn(rows, steps, inputs, requires_grad=True)
    layer = getattr(keras.layers, kind)(units, return_sequences=True)
    layer.build(x.shape)
    peer = getattr(torch.nn, kind)(inputs, units, batch_first=True)
    weights = [weight.value for weight in layer.trainable_weights]
    ours = layer_step(layer, weights, x)
    of_torch = layer_step(peer, [*peer.parameters()], x)
    of_layer = best([of_keras(ours), ours, of_torch], seconds)
    train = training_step(kind, sizes)
    of_model = best([of_keras(train), train], seconds)
    memory = [saved_megabytes(step, [x, *weights]) for step in (of_keras(ours), ours)]
    cells = [
        f"{kind} N{rows} T{steps} I{inputs} H{units}",
        *(f"{each:.2f}" for each in of_layer),
        f"{of_layer[0] / of_layer[1]:.1f}",
        f"{of_layer[2] / of_layer[1]:.2f}",
        *(f"{each:.2f}" for each in of_model),
        f"{of_model[0] / of_model[1]:.1f}",
        *(f"{each:.1f}" for each in memory),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each group of columns")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(
        f"Threads: {arguments.threads}. Keras {keras.__version__}, PyTorch {torch.__version__}.\n\n"
        "| layer | Keras, ms | accelerate, ms | torch.nn, ms | Keras ÷ ours | torch.nn ÷ ours | "
        "step of Keras, ms | accelerate, ms | ÷ | Keras saves, MB | accelerate, MB |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    )
    accelerate()
    for kind in ("LSTM", "GRU"):
        for sizes in SIZES:
            print(row(kind, sizes, arguments.seconds), flush=True)


if __name__ == "__main__":
    main()
