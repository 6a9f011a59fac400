"""Trains two models in float32, mixed_bfloat16 and bfloat16; writes the loss by epoch and a plot.

    python benchmarks/loss_curves.py [--output benchmarks]

* demo: the model and the data of `tf-lstm-ops demo`, 300 steps.
* adding problem (S. Hochreiter and J. Schmidhuber, 1997), 2,400 steps: each step of a sequence has
  a random number and a mark. The target is the sum of the two marked numbers, one in each half of
  the sequence. The loss is the mean squared error; that of a constant is at least 1/6.

In all types a seed gives the same initial weights, drawn in float32, and the same order of data.
TensorFlow draws other dropout masks in bfloat16. The last layer is in float32 in all types.

Adam's beta_2 is 0.99 in all types. The default, 0.999, is 1 in bfloat16, and Keras' Adam then
multiplies all updates by 0.

With --output DIR it writes loss_curves.json and the SVGs to DIR, and prints the table of the guide.
It takes about three minutes on two cores.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras
import numpy as np

from peers.capacity import measure
from peers.machine import describe
from tf_lstm_ops.cli import training, vowels
from tf_lstm_ops.keras import LSTM
from tf_lstm_ops.keras.policy import default_dtype_policy

sys.path.append(str(Path(__file__).resolve().parents[1] / "scripts"))
import plot_loss_curves
from plot_loss_curves import DTYPES

SEEDS = range(3)
BETA_2 = 0.99
DEMO_EPOCHS, EPOCHS = 30, 12
UNITS, STEPS, SEQUENCES, BATCH_SIZE = 128, 50, 6400, 32
Curves = dict[str, list[float]]  # a value for each epoch


def in_dtype(build: Callable[..., keras.Model], steps: int, dtype: str, seed: int) -> keras.Model:
    """A compiled model with the initial weights that it has in float32.

    TensorFlow has no bfloat16 kernel for the default recurrent_initializer.
    """
    initializer = {"recurrent_initializer": "glorot_uniform"} if dtype == "bfloat16" else {}
    model = build(functools.partial(LSTM, **initializer), steps, seed, dtype)
    model.set_weights(build(LSTM, steps, seed, "float32").get_weights())
    model.optimizer.beta_2 = BETA_2
    return model


def train_demo(dtype: str, seed: int, epochs: int = DEMO_EPOCHS) -> Curves:
    train, test = vowels.standardise(*vowels.load())
    steps = epochs * -(-len(train.speakers) // training.BATCH_SIZE)
    found = training.Training(in_dtype(training.build_model, steps, dtype, seed))
    random = np.random.default_rng(seed)
    for _ in range(epochs):
        training.run_epoch(found, train, test, random.permutation(len(train.speakers)))
    scores = {"training loss": found.train, "loss": found.test}
    curves = {name: [score.loss for score in values] for name, values in scores.items()}
    return {**curves, "accuracy": [score.accuracy for score in found.test]}


def adding_problem(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Sequences [count, STEPS, 2] of numbers and marks, and their targets [count]."""
    numbers, marks = random.random((count, STEPS)), np.zeros((count, STEPS))
    for half in np.split(np.arange(STEPS), 2):
        marks[np.arange(count), random.choice(half, count)] = 1
    return np.stack([numbers, marks], -1).astype("float32"), (numbers * marks).sum(1)


def build_adding(layer: Callable[..., Any], steps: int, seed: int, dtype: str) -> keras.Model:
    keras.utils.set_random_seed(seed)
    with default_dtype_policy(dtype):
        layers = [layer(UNITS), keras.layers.Dense(1, dtype="float32")]
        model = keras.Sequential([keras.Input((None, 2)), *layers])
    rate = keras.optimizers.schedules.CosineDecay(1e-2, steps)
    model.compile(keras.optimizers.Adam(rate), "mse", jit_compile=False)
    return model


def train_adding(dtype: str, seed: int, epochs: int = EPOCHS, count: int = SEQUENCES) -> Curves:
    data = np.random.default_rng(0)
    (x, y), test = adding_problem(count, data), adding_problem(1000, data)
    model = in_dtype(build_adding, epochs * -(-count // BATCH_SIZE), dtype, seed)
    random, curves = np.random.default_rng(seed), Curves({"training loss": [], "loss": []})
    for _ in range(epochs):
        order = random.permutation(count)
        fit = model.fit(x[order], y[order], batch_size=BATCH_SIZE, shuffle=False, verbose=0)
        curves["training loss"] += fit.history["loss"]
        curves["loss"].append(model.evaluate(*test, batch_size=1000, verbose=0))
    return curves


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", metavar="DIR", type=Path, default=Path(__file__).parent)
    folder = parser.parse_args().output
    found: dict[str, Any] = {"machine": describe(measure(os.cpu_count() or 1)), "runs": {}}
    for task, train in {"demo": train_demo, "adding": train_adding}.items():
        found["runs"][task] = {d: [train(d, seed) for seed in SEEDS] for d in DTYPES}
    (folder / plot_loss_curves.NAME).write_text(json.dumps(found, indent=1) + "\n")
    plot_loss_curves.main(folder)


if __name__ == "__main__":
    main()
