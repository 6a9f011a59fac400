"""Tries a SavedModel in a process that has TensorFlow only, and no GPU."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tf_lstm_ops.cli import messages

_LIMIT = 300  # seconds
# What TensorFlow says of an op that has no kernel for the CPU.
_NO_KERNEL = re.compile(r"OpKernel|Cannot assign a device|not registered")


class Trial(NamedTuple):
    """What became of a SavedModel.

    Attributes:
      loads: whether ``tf.saved_model.load`` takes it.
      runs: whether its signatures run on the CPU; None: that is not known, as one of them raises
        another error than that an op has no kernel.
      reason: the error, in one line; None without one.
    """

    loads: bool
    runs: bool | None
    reason: str | None


def attempt(path: Path) -> Trial:
    """Loads a SavedModel and runs its signatures on zeros, in a process without this package.

    Args:
      path: the folder.

    Returns:
      What became of it.
    """
    program = f"from __future__ import annotations\n{inspect.getsource(_child)}\n_child()"
    command = [sys.executable, "-c", program, str(path.resolve())]
    hidden = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **hidden},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT,
        )
    except subprocess.TimeoutExpired:
        return Trial(True, None, f"it took more than {_LIMIT} seconds")
    return _read(done)


def _read(done: subprocess.CompletedProcess[str]) -> Trial:
    """What the process has found."""
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(lines[-1]) if lines else {"loads": False}
    error = found.get("error", f"the process ended with {done.returncode}")
    if error is None:
        return Trial(True, True, None)
    reason = messages.one_line(RuntimeError(error))
    if not found["loads"]:
        return Trial(False, False, reason)
    return Trial(True, False if _NO_KERNEL.search(error) else None, reason)


def _child() -> None:
    """The process: prints a document after it has loaded the file, and one at the end.

    It is run from its source alone, so that it imports nothing of this package.
    """
    import json
    import sys

    sys.path[:] = [path for path in sys.path if path]  # no module of the current folder
    import tensorflow as tf

    def zeros(spec: tf.TensorSpec) -> tf.Tensor:
        sizes = spec.shape.as_list()
        shape = [(16 if k else 1) if size is None else size for k, size in enumerate(sizes)]
        return tf.fill(shape, "") if spec.dtype == tf.string else tf.zeros(shape, spec.dtype)

    loads = False
    error: str | None = "it has no signatures"
    try:
        model = tf.saved_model.load(sys.argv[1])
        loads = True
        print("\n" + json.dumps({"loads": True}), flush=True)
        for function in model.signatures.values():
            function(**{k: zeros(v) for k, v in function.structured_input_signature[1].items()})
            error = None
    except Exception as caught:
        error = f"{type(caught).__name__}: {caught}"
    print("\n" + json.dumps({"loads": loads, "error": error}), flush=True)
