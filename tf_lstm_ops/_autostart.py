"""Calls `keras.accelerate` in processes whose environment asks for it."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

from tf_lstm_ops._when_imported import when_imported

# "1": accelerate the recurrent layers of Keras once it is imported.
VARIABLE = "TF_LSTM_OPS_ACCELERATE"
# The number of the process that prints what its layers ran, and "line" or "table".
_REPORT = "TF_LSTM_OPS_ACCELERATE_REPORT"
_FOLDER = Path(__file__).absolute().with_name("_autostart_path")  # of sitecustomize.py

_accelerations: list[Any] = []


def prepare(environment: MutableMapping[str, str], form: str) -> None:
    """Sets the variables of a process that takes the place of this one.

    Args:
      environment: the variables, which change.
      form: what the process prints at its end: "line" or "table".
    """
    given = environment.get("PYTHONPATH")
    # An empty path in it is the current folder.
    rest = [path for path in given.split(os.pathsep) if path != str(_FOLDER)] if given else []
    environment["PYTHONPATH"] = os.pathsep.join([str(_FOLDER), *rest])
    environment[VARIABLE] = "1"
    environment[_REPORT] = f"{os.getpid()} {form}"


def is_wanted() -> bool:
    """Whether the environment asks for the acceleration.

    Returns:
      True if it does.
    """
    return os.environ.get(VARIABLE, "0") not in ("", "0")


def follow_imports() -> None:
    """Accelerates the layers of Keras at the end of its import, if the environment says so."""
    if not is_wanted():
        return
    number, _, form = os.environ.get(_REPORT, "").partition(" ")
    if number == str(os.getpid()):
        atexit.register(_print_report, form, number)
    when_imported("tf_lstm_ops.keras", _accelerate)


def _accelerate() -> None:
    from tf_lstm_ops import keras

    _accelerations.append(keras.accelerate())


def _print_report(form: str, number: str) -> None:
    if number != str(os.getpid()):  # a child that was forked
        return
    if _accelerations:
        report = _accelerations[0].report()
        text = f"\n{report}" if form == "table" else report.summary
    elif _has_failed():
        return
    else:
        text = _why_not()
    with contextlib.suppress(OSError, ValueError):  # the program may have closed the stream
        print(f"tf-lstm-ops: {text}", file=sys.stderr, flush=True)


def _why_not() -> str:
    """Why nothing was accelerated."""
    if "keras" in sys.modules and {"tensorflow", "torch"} & sys.modules.keys():
        from tf_lstm_ops import _keras_backend

        return f"nothing was accelerated: {_keras_backend.problem() or 'Keras was not loaded'}"
    if "tf_keras" in sys.modules:
        return "nothing was accelerated: the program uses Keras 2 (tf_keras)"
    return "nothing was accelerated: this process did not import Keras on TensorFlow or PyTorch"


def _has_failed() -> bool:
    """Whether an error has ended the program, or Python has not found it."""
    program = (getattr(sys, "argv", None) or [""])[0]
    is_missing = program == "-m" or (program not in ("", "-", "-c") and not os.path.exists(program))
    return is_missing or getattr(sys, "last_type", None) is not None
