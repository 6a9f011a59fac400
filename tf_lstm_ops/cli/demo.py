"""``tf-lstm-ops demo``: who is speaking? Trained beside stock Keras, exported and reloaded."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import numpy.typing as npt

from tf_lstm_ops.cli import CommandError, plot, vowels
from tf_lstm_ops.keras import LSTM
from tf_lstm_ops.keras.policy import default_dtype_policy

UNITS = 100
BATCH_SIZE = 27  # a tenth of the training utterances
LEARNING_RATE = 5e-3
DROPOUT = 0.3
LEAST_ACCURACY = 0.95
DTYPE_POLICIES = ("float32", "mixed_float16", "mixed_bfloat16")

# Runs in a process of its own: what a user of the exported model writes.
RELOAD = """
import sys
import numpy as np
import tensorflow as tf
import tf_lstm_ops  # loads the ops that the SavedModel needs

model_folder, features, predictions = sys.argv[1:]
model = tf.saved_model.load(model_folder)
np.save(predictions, model.serve(np.load(features)).numpy())
"""


class Score(NamedTuple):
    loss: float
    accuracy: float


@dataclass
class Training:
    """A model and, for each epoch, what it reached and how long training took."""

    model: keras.Model
    train: list[Score] = field(default_factory=list)
    test: list[Score] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def seconds_per_epoch(self) -> float:
        """Median without the first epoch, in which TensorFlow traces and compiles."""
        return statistics.median(self.seconds[1:])


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    summary = "train a speaker classifier beside stock Keras, export it, reload it"
    parser = commands.add_parser(
        "demo",
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}. Fails if the test accuracy is below "
        f"{LEAST_ACCURACY:.0%} or the reloaded model predicts anything else.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument(
        "--output", metavar="DIR", type=Path, default="tf_lstm_ops_demo", help="folder to write"
    )
    parser.add_argument(
        "--epochs", metavar="N", type=int, default=30, help="passes over the training data"
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, default=0, help="of weights, dropout and data order"
    )
    parser.add_argument(
        "--dtype-policy",
        choices=DTYPE_POLICIES,
        default=DTYPE_POLICIES[0],
        help="of both models; the mixed ones calculate in 16 bits and keep weights in 32",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """The whole demo; returns 0, or 1 if a check at its end fails."""
    if arguments.epochs < 2:
        raise CommandError("--epochs must be at least 2: the first epoch is not timed")
    if not 0 <= arguments.seed < 2**32:
        raise CommandError(f"--seed must be from 0 to {2**32 - 1}")
    output = _writable_folder(arguments.output)
    train, test = vowels.standardise(*vowels.load())
    print(
        f"Japanese Vowels: {vowels.SPEAKERS} speakers, {len(train.speakers)} utterances to learn "
        f"from, {len(test.speakers)} to test on\n"
        f"Model: Masking, LSTM({UNITS}), Dense({vowels.SPEAKERS}); "
        f"trained with tf_lstm_ops.keras.LSTM (ours) and keras.layers.LSTM (stock) "
        f"in {arguments.dtype_policy}\n"
    )
    ours, stock = train_side_by_side(
        train, test, arguments.epochs, arguments.seed, arguments.dtype_policy
    )

    expected = ours.model.predict_on_batch(test.features)
    chart, saved_model = output / "demo.png", output / "saved_model"
    plot.save(chart, ours, stock, confusion_matrix(test.speakers, expected.argmax(axis=-1)))
    export(ours.model, saved_model)
    reloaded = predict_in_fresh_process(saved_model, test.features)

    _print_summary(ours, stock)
    passed = [report_accuracy(ours, stock), report_reload(expected, reloaded)]
    print(f"written        {chart}\n               {saved_model}")
    return 0 if all(passed) else 1


def train_side_by_side(
    train: vowels.Utterances,
    test: vowels.Utterances,
    epochs: int,
    seed: int,
    dtype_policy: str = DTYPE_POLICIES[0],
) -> tuple[Training, Training]:
    """Trains ours and stock from the same weights on the same batches, and prints the progress.

    The models take turns epoch by epoch, each going first every other time, so that whatever else
    the machine does slows both alike.
    """
    steps = epochs * -(-len(train.speakers) // BATCH_SIZE)
    ours, stock = (
        Training(build_model(layer, steps, seed, dtype_policy))
        for layer in (LSTM, keras.layers.LSTM)
    )
    stock.model.set_weights(ours.model.get_weights())

    print("epoch    loss   train    test  seconds  stock test  stock seconds", flush=True)
    random = np.random.default_rng(seed)
    for epoch in range(epochs):
        order = random.permutation(len(train.speakers))
        for training in (ours, stock) if epoch % 2 == 0 else (stock, ours):
            run_epoch(training, train, test, order)
        print(
            f"{epoch + 1:2}/{epochs:2}  {ours.train[-1].loss:6.4f}  "
            f"{ours.train[-1].accuracy:6.1%}  {ours.test[-1].accuracy:6.1%}  "
            f"{ours.seconds[-1]:7.3f}  {stock.test[-1].accuracy:10.1%}  {stock.seconds[-1]:13.3f}"
            + ("  (with tracing)" if epoch == 0 else ""),
            flush=True,
        )
    return ours, stock


def build_model(
    layer: type[keras.layers.LSTM], steps: int, seed: int, dtype_policy: str = DTYPE_POLICIES[0]
) -> keras.Model:
    """A classifier of utterances [B, T, 12] into speaker probabilities [B, 9], compiled.

    With mixed_float16 ``compile`` puts a LossScaleOptimizer around the optimizer.
    """
    with default_dtype_policy(dtype_policy):
        return _build_model(layer, steps, seed)


def _build_model(layer: type[keras.layers.LSTM], steps: int, seed: int) -> keras.Model:
    keras.utils.set_random_seed(seed)
    model = keras.Sequential(
        [
            keras.Input((None, vowels.FEATURES)),
            keras.layers.Masking(),  # frames that are all zero are padding
            layer(UNITS, dropout=DROPOUT, seed=seed),
            # Probabilities are float32 under every policy: half has none below 6e-8.
            keras.layers.Dense(vowels.SPEAKERS, activation="softmax", dtype="float32"),
        ]
    )
    rate = keras.optimizers.schedules.CosineDecay(LEARNING_RATE, decay_steps=steps)
    model.compile(
        optimizer=keras.optimizers.Adam(rate),
        loss="sparse_categorical_crossentropy",
        jit_compile=False,  # XLA would not run the fused op
    )
    return model


def run_epoch(
    training: Training,
    train: vowels.Utterances,
    test: vowels.Utterances,
    order: npt.NDArray[np.int64],
) -> None:
    """One pass over the training data in the given order, timed; then a look at both parts."""
    start = time.perf_counter()
    for first in range(0, len(order), BATCH_SIZE):
        rows = order[first : first + BATCH_SIZE]
        training.model.train_on_batch(train.features[rows], train.speakers[rows])
    training.seconds.append(time.perf_counter() - start)
    training.train.append(score(training.model, train))
    training.test.append(score(training.model, test))


def score(model: keras.Model, utterances: vowels.Utterances) -> Score:
    """Cross-entropy and accuracy of the model as it predicts, without dropout."""
    probabilities = model.predict_on_batch(utterances.features)
    of_speaker = probabilities[np.arange(len(probabilities)), utterances.speakers]
    return Score(
        loss=float(-np.log(np.maximum(of_speaker, np.finfo(np.float32).tiny)).mean()),
        accuracy=float((probabilities.argmax(axis=-1) == utterances.speakers).mean()),
    )


def confusion_matrix(
    actual: npt.NDArray[np.integer], predicted: npt.NDArray[np.integer]
) -> npt.NDArray[np.int64]:
    """Integer [9, 9]: how many utterances of speaker (row) were taken for speaker (column)."""
    counts = np.zeros((vowels.SPEAKERS, vowels.SPEAKERS), np.int64)
    np.add.at(counts, (actual, predicted), 1)
    return counts


def export(model: keras.Model, folder: Path) -> None:
    """``model.export`` without its report on the signature; Keras before 3.8 has no ``verbose``."""
    with contextlib.redirect_stdout(io.StringIO()):
        model.export(str(folder))


def predict_in_fresh_process(
    saved_model: Path, features: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Probabilities [B, 9] for features [B, T, 12] from a SavedModel that a new Python loads.

    Raises:
      CommandError: the new process failed; its last lines are in the message.
    """
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = Path(folder, "features.npy"), Path(folder, "predictions.npy")
        np.save(inputs, features)
        command = [sys.executable, "-c", RELOAD, *map(str, (saved_model, inputs, outputs))]
        process = subprocess.run(command, capture_output=True, text=True)
        if process.returncode != 0:
            last_lines = "\n".join(process.stderr.splitlines()[-10:])
            raise CommandError(
                f"a fresh process could not use {saved_model} (exit status {process.returncode}):\n"
                f"{last_lines}\nPlease report this with the output of 'tf-lstm-ops info'."
            )
        return np.load(outputs)


def _print_summary(ours: Training, stock: Training) -> None:
    layer = next(layer for layer in ours.model.layers if isinstance(layer, LSTM))
    path = "one fused op per sequence" if layer.uses_fused_op else layer.fallback_reason
    compiled = " (compiled by XLA, Keras' default here)" if stock.model.jit_compile else ""
    mine, theirs = ours.seconds_per_epoch(), stock.seconds_per_epoch()
    print(
        f"\npath taken     {path}\n"
        f"time per epoch {mine:.4f} s, stock {theirs:.4f} s{compiled}: "
        f"{theirs / mine:.2f} times as fast as stock (medians without the first epoch)"
    )


def report_accuracy(ours: Training, stock: Training) -> bool:
    accuracy = ours.test[-1].accuracy
    passed = accuracy >= LEAST_ACCURACY
    print(f"test accuracy  {accuracy:.2%}, stock {stock.test[-1].accuracy:.2%}", end="")
    if passed:
        print(f" (at least {LEAST_ACCURACY:.0%} expected)")
    else:
        print(
            f"; below the {LEAST_ACCURACY:.0%} expected: give more --epochs or another --seed; if "
            "the defaults fail, please report it with the output of 'tf-lstm-ops info'"
        )
    return passed


def report_reload(expected: npt.NDArray[np.float32], reloaded: npt.NDArray[np.float32]) -> bool:
    passed = expected.tobytes() == reloaded.tobytes()
    if passed:
        print(f"reloaded model {expected.size} predictions in a fresh process, equal bit for bit")
    else:
        print(
            f"reloaded model predictions differ by up to {np.abs(expected - reloaded).max():.1e} "
            "in a fresh process: please report it with the output of 'tf-lstm-ops info'"
        )
    return passed


def _writable_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"cannot create {folder} ({error.strerror}): choose another folder with --output DIR"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandError(f"cannot write to {folder}: choose another folder with --output DIR")
    return folder
