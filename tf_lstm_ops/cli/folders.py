"""``tf-lstm-ops info --include-dir`` and ``--library-dir``, without NumPy and TensorFlow."""

from __future__ import annotations

import argparse

from tf_lstm_ops import _folders


def run(arguments: argparse.Namespace) -> int:
    """Prints the folders, each in a line.

    Args:
      arguments: those of the command line.

    Returns:
      0.
    """
    if arguments.include_dir:
        print(_folders.get_include())
    if arguments.library_dir:
        print(_folders.get_library_dir())
    return 0
