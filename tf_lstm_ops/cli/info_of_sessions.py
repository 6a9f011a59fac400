"""``tf-lstm-ops info`` without TensorFlow or without the ops: what sessions need."""

from __future__ import annotations

import argparse
import ctypes
import platform
from typing import Any

import numpy as np

from tf_lstm_ops import _library, _tensorflow
from tf_lstm_ops._version import __version__
from tf_lstm_ops.cli import output
from tf_lstm_ops.inference import native

NEXT = "tf-lstm-ops convert model.onnx model.session"


def run(arguments: argparse.Namespace) -> int:
    """Prints versions and the library of sessions.

    Args:
      arguments: those of the command line.

    Returns:
      0.
    """
    found = facts()
    if arguments.json:
        output.print_json(found)
    else:
        words = [*versions(found, _lacking()), *rows(found["session_library"])]
        output.print_facts([*words, ("next", NEXT)])
    return 0


def facts(tensorflow: str | None = None) -> dict[str, Any]:
    """What is known without TensorFlow.

    Args:
      tensorflow: its version; None without it.

    Returns:
      The document of ``tf-lstm-ops info --json``, or its beginning.
    """
    return {
        "tf_lstm_ops": __version__,
        "tensorflow": tensorflow,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "session_library": library(),
    }


def versions(found: dict[str, Any], *others: tuple[str, str]) -> list[tuple[str, str]]:
    """The versions in words.

    Args:
      found: of `facts`.
      *others: lines of other packages.

    Returns:
      Lines of ``tf-lstm-ops info``, as of `rows`.
    """
    names = ("numpy", "NumPy"), ("python", "Python"), ("platform", "platform")
    first = ("tf_lstm_ops", found["tf_lstm_ops"])
    return [first, *others, *((words, found[name]) for name, words in names)]


def _lacking() -> tuple[str, str]:
    """Why there are no layers and ops."""
    if not _library.has_ops():
        return "built with", f"{_library.SESSIONS_ONLY}. {_library.REBUILD}"
    words = "not installed; layers and ops need it, `run` with Keras on PyTorch does not"
    return "TensorFlow", f"{words}. {_tensorflow.INSTALL}"


def library() -> dict[str, Any]:
    """The library of sessions.

    Returns:
      Its ``path``; ``api_version`` and ``instruction_set``, or None and the ``problem`` if it
      cannot be loaded.
    """
    found = {"path": str(native.path()), "api_version": None, "instruction_set": None}
    try:
        loaded = native.library()
    except (OSError, RuntimeError) as error:
        return {**found, "problem": str(error)}
    name = loaded["tf_lstm_ops_selected_instruction_set"]
    name.restype = ctypes.c_char_p
    found["api_version"] = loaded.tf_lstm_ops_api_version()
    return {**found, "instruction_set": name().decode(), "problem": None}


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The library of sessions in words.

    Args:
      found: of `library`.

    Returns:
      Lines of ``tf-lstm-ops info``: a name and a value each.
    """
    if found["problem"]:
        return [("session library", f"cannot be loaded: {found['problem']}")]
    words = f"version {found['api_version']} of the C API, {found['instruction_set']}"
    return [("session library", found["path"]), ("sessions", words)]
