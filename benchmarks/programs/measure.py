"""Runs a program with seeds set, and writes seconds and losses of what its models fit.

    python benchmarks/programs/measure.py [--last-bits] RESULT.json PROGRAM.py

With --last-bits, half of the numbers in the inputs are the next larger ones.

The file has a list with an object for each call of `keras.Model.fit`: "seconds" of the call, which
include tracing, and "epochs". An epoch has "seconds", with its validation, and "losses" by name.
"""

from __future__ import annotations

import functools
import inspect
import json
import runpy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np


class Epochs(keras.callbacks.Callback):
    """Collects the epochs of a call of fit."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []
        self._start = 0.0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._start = time.perf_counter()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        seconds = time.perf_counter() - self._start
        losses = {key: float(value) for key, value in (logs or {}).items() if "loss" in key}
        self.found.append({"seconds": seconds, "losses": losses})


def with_other_last_bits(value: Any) -> Any:
    """An array of floats of which half are the next larger ones of float32; else the value."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f":
        return value
    numbers = value.astype(np.float32)
    chosen = np.random.default_rng(0).random(numbers.shape) < 0.5
    return np.where(chosen, np.nextafter(numbers, np.float32(np.inf)), numbers)


def measured(
    fit: Callable[..., Any], fits: list[dict[str, Any]], last_bits: bool
) -> Callable[..., Any]:
    """A method like `keras.Model.fit` that notes what it does.

    Args:
      fit: the method of Keras.
      fits: the list to which each call adds an object.
      last_bits: whether it fits inputs that differ in their last bits.

    Returns:
      The method.
    """
    signature = inspect.signature(fit)

    @functools.wraps(fit)
    def measured_fit(*args: Any, **kwargs: Any) -> Any:
        epochs = Epochs()
        given = signature.bind(*args, **kwargs)
        callbacks = given.arguments.get("callbacks") or []
        if isinstance(callbacks, keras.callbacks.CallbackList):
            callbacks.append(epochs)
        else:
            others = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
            # The first one: the time of other callbacks, which may write files, does not count.
            given.arguments["callbacks"] = [epochs, *others]
        if last_bits and "x" in given.arguments:
            x = given.arguments["x"]
            given.arguments["x"] = keras.tree.map_structure(with_other_last_bits, x)
        start = time.perf_counter()
        result = fit(*given.args, **given.kwargs)
        fits.append({"seconds": time.perf_counter() - start, "epochs": epochs.found})
        return result

    return measured_fit


def main() -> None:
    *options, result, program = sys.argv[1:]
    fits: list[dict[str, Any]] = []
    keras.Model.fit = measured(keras.Model.fit, fits, "--last-bits" in options)
    keras.utils.set_random_seed(0)
    sys.argv[:] = [program]
    sys.path.pop(0)  # this folder
    runpy.run_path(program, run_name="__main__")
    Path(result).write_text(json.dumps(fits))


if __name__ == "__main__":
    main()
