"""Which exports work for a model: each is tried in a temporary folder."""

from __future__ import annotations

import functools
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tf_lstm_ops import export, inference
from tf_lstm_ops.cli import messages, output
from tf_lstm_ops.export import errors


def _session(model: Any, path: Path) -> str | None:
    """Returns what to know about the session."""
    session = inference.Session(model)
    session.save(path)
    return messages.no_stream(session)


# The exports by the name of the call, without the arguments that all have.
EXPORTS: dict[str, Callable[[Any, Path], Any]] = {
    "saved_model": export.saved_model,
    "saved_model(portable=True)": functools.partial(export.saved_model, portable=True),
    "onnx": export.onnx,
    "tflite": export.tflite,
    "session": _session,
}


class Export(NamedTuple):
    """What became of an export.

    Attributes:
      name: the call, such as "saved_model(portable=True)".
      works: whether the file was written and predicts what the model predicts.
      reason: why it does not work, or what was not compared; None if there is nothing to say.
      change: what to change in the model so that it works; None if that is not known.
    """

    name: str
    works: bool
    reason: str | None
    change: str | None = None


def attempt(name: str, model: Any) -> Export:
    """Tries an export.

    Args:
      name: of `EXPORTS`.
      model: the model. It does not change.

    Returns:
      What became of it.
    """
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        path = Path(folder, "model")
        try:
            with output.silence():
                note = EXPORTS[name](model, path)
        except errors.UnknownSteps as error:
            change = (
                "give keras.Input a fixed number of steps, or the export an input_signature. The "
                f"TimeDistributed layer {error.layer} has an unknown number, which Keras exports "
                "wrongly, also with model.export"
            )
            return Export(name, False, _in_words(error.__cause__, path), change)
        except Exception as error:  # TensorFlow, Keras and tf2onnx raise many types
            return Export(name, False, _in_words(error, path))
        notes = [_in_words(w.message, path) for w in said if "was not compared" in str(w.message)]
    return Export(name, True, note if isinstance(note, str) else notes[0] if notes else None)


def _in_words(error: Any, path: Path) -> str:
    return messages.one_line(error).replace(str(path), "PATH")
