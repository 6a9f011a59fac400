"""``tf-lstm-ops demo``: trains a speaker classifier with ours and stock, exports and reloads it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import numpy.typing as npt

from tf_lstm_ops.cli import (
    CommandError,
    doctor_timing,
    messages,
    require_matplotlib,
    training,
    vowels,
)
from tf_lstm_ops.cli.arguments import LEAST_ACCURACY
from tf_lstm_ops.cli.training import Training
from tf_lstm_ops.keras import LSTM

# A program as a user of the exported model writes it. It runs in a new process.
RELOAD = """
import sys
import numpy as np
import tensorflow as tf
import tf_lstm_ops  # loads the ops that the SavedModel needs

model_folder, features, predictions = sys.argv[1:]
model = tf.saved_model.load(model_folder)
np.save(predictions, model.serve(np.load(features)).numpy())
"""

NEXT = """Next, with a model of yours:
  tf-lstm-ops doctor model.keras               what is slow, and what a change gains
  tf-lstm-ops convert model.keras fast.keras   the model with the layers of this package"""


def run(arguments: argparse.Namespace) -> int:
    """Runs the demo.

    Args:
      arguments: those of the command line.

    Returns:
      0, or 1 if a check at the end of the demo fails.

    Raises:
      CommandError: matplotlib is missing, or a file cannot be used.
    """
    require_matplotlib()
    from tf_lstm_ops.cli import plot  # not above: the other commands work without matplotlib

    folder = _writable_folder(arguments.output)
    train, test = vowels.standardise(*vowels.load())
    print(
        f"Japanese Vowels: {vowels.SPEAKERS} speakers, {len(train.speakers)} utterances to train "
        f"on, {len(test.speakers)} to test on\n"
        f"Model: Masking, LSTM({training.UNITS}), Dense({vowels.SPEAKERS}); "
        f"trained with tf_lstm_ops.keras.LSTM (ours) and keras.layers.LSTM (stock) "
        f"in {arguments.dtype_policy}\n"
    )
    ours, stock = training.train_side_by_side(
        train, test, arguments.epochs, arguments.seed, arguments.dtype_policy
    )

    expected = ours.model.predict_on_batch(test.features)
    chart, saved_model = folder / "demo.png", folder / "saved_model"
    plot.save(chart, ours, stock)
    print("\nexports the model and loads it in a new process", flush=True)
    _export(ours.model, saved_model)
    reloaded = _predict_in_fresh_process(saved_model, test.features)

    _print_summary(ours, stock)
    passed = [_report_accuracy(ours, stock), _report_reload(expected, reloaded)]
    print(f"written        {chart}\n               {saved_model}\n\n{NEXT}")
    return 0 if all(passed) else 1


def _export(model: keras.Model, folder: Path) -> None:
    """Writes a model as a SavedModel, without printing its signature."""
    model.export(str(folder), verbose=False)


def _predict_in_fresh_process(
    saved_model: Path, features: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """Loads a SavedModel in a new Python process and predicts with it."""
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
    ratios = [b / a for a, b in zip(ours.seconds[1:], stock.seconds[1:], strict=True)]
    print(
        f"\npath taken     {path}\n"
        f"time per epoch {mine:.4f} s, stock {theirs:.4f} s{compiled}: "
        f"{theirs / mine:.2f} times as fast as stock (medians without the first epoch; "
        f"{min(ratios):.2f} to {max(ratios):.2f} in single epochs)"
    )
    if note := messages.busy(doctor_timing.capacity()):
        print(f"busy           {note}")


def _report_accuracy(ours: Training, stock: Training) -> bool:
    """Prints the test accuracy."""
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


def _report_reload(expected: npt.NDArray[np.float32], reloaded: npt.NDArray[np.float32]) -> bool:
    """Prints whether the reloaded model predicts the same."""
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
