"""Whether this process is the command line. This module imports nothing of the package."""

from __future__ import annotations

import sys
from pathlib import Path


def _is_program() -> bool:
    """Compares sys.argv with what Python was started with, while the package is imported.

    sys.argv alone is not enough: a process that multiprocessing spawns has that of its parent.
    """
    [program, *arguments] = sys.argv or [""]
    [*_, started] = sys.orig_argv[: len(sys.orig_argv) - len(arguments)] or [""]
    if program == "-m":  # until Python has found the module to run, which imports its package
        return started in ("tf_lstm_ops", "-mtf_lstm_ops", "tf_lstm_ops.__main__")
    return started == program and Path(program).name in ("tf-lstm-ops", "tf-lstm-ops.exe")


# Then the import of the package does not import TensorFlow. The command line does that once it has
# read its arguments.
IS_PROGRAM = _is_program()
