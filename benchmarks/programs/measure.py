"""Runs a program with seeds set, and writes seconds and losses of what its models fit.

    python benchmarks/programs/measure.py [--float64] RESULT.json PROGRAM.py

With --float64, layers compute in float64 unless they ask for another type.

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


def measured(fit: Callable[..., Any], fits: list[dict[str, Any]]) -> Callable[..., Any]:
    """A method like `keras.Model.fit` that notes what it does.

    Args:
      fit: the method of Keras.
      fits: the list to which each call adds an object.

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
        start = time.perf_counter()
        result = fit(*given.args, **given.kwargs)
        fits.append({"seconds": time.perf_counter() - start, "epochs": epochs.found})
        return result

    return measured_fit


def main() -> None:
    *options, result, program = sys.argv[1:]
    fits: list[dict[str, Any]] = []
    keras.Model.fit = measured(keras.Model.fit, fits)
    if "--float64" in options:
        keras.config.set_floatx("float64")
    keras.utils.set_random_seed(0)
    sys.argv[:] = [program]
    sys.path.pop(0)  # this folder
    runpy.run_path(program, run_name="__main__")
    Path(result).write_text(json.dumps(fits))


if __name__ == "__main__":
    main()
