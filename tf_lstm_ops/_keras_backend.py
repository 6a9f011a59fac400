"""Whether the Keras of this process can run the layers."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def is_torch() -> bool:
    """Whether Keras runs on PyTorch, where `keras.accelerate` is what the package offers.

    Keras is not imported for it: TensorFlow must come first where Keras runs on it.

    Returns:
      True if the backend of this process is, or will be, PyTorch.
    """
    try:
        return bool(sys.modules["keras"].backend.backend() == "torch")
    except (KeyError, AttributeError):  # not imported, or another thread is importing it
        return (os.environ.get("KERAS_BACKEND") or configured()) == "torch"


def configured() -> str | None:
    """The backend in Keras' file of settings.

    Returns:
      Its name; None if there is no file, or it names none.
    """
    folder = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
    try:
        found = json.loads(Path(folder, "keras.json").read_text()).get("backend")
    except (OSError, ValueError, AttributeError):
        return None
    return None if found is None else str(found)


def problem() -> str | None:
    """Why the layers cannot be used in this process. The ops need no Keras.

    Returns:
      The problem and how to solve it; None if Keras runs on TensorFlow.
    """
    try:
        import keras
    except ImportError as error:  # of the backend's package, for example
        found = f"`import keras` fails: {error}"
    else:
        backend = keras.backend.backend()
        if backend == "tensorflow":
            return None
        found = f"the backend is {backend}"
    return (
        f"the layers of tf_lstm_ops need Keras with its TensorFlow backend, but {found}. The "
        'backend is set by the environment variable KERAS_BACKEND, or else by "backend" in '
        "~/.keras/keras.json. Set KERAS_BACKEND=tensorflow before keras is imported. "
        "tf_lstm_ops.raw_ops and tf_lstm_ops.weights work with any backend, and "
        "tf_lstm_ops.keras.accelerate with torch, too"
    )
