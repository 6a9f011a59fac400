"""``tf-lstm-ops run``: a program of Python whose recurrent Keras layers run the fused ops."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from tf_lstm_ops import _autostart
from tf_lstm_ops.cli import CommandError


def run(arguments: argparse.Namespace) -> int:
    """Replaces this process by Python with the program. It returns if that fails only.

    Args:
      arguments: those of the command line.

    Returns:
      Nothing.

    Raises:
      CommandError: this Python ignores PYTHONPATH.
    """
    if sys.flags.ignore_environment:
        raise CommandError("run needs PYTHONPATH, which the options -E and -I of Python ignore")
    _autostart.prepare(os.environ, "table" if arguments.report else "line")
    sys.stdout.flush()
    program = arguments.program
    for option, words in (("-m", arguments.of_module), ("-c", arguments.of_code)):
        if words:
            program = [option, *words]
    os.execv(sys.executable, [sys.executable, *_options_of_python(), *program])


def _options_of_python() -> Sequence[str]:
    """The options that Python itself was given, such as -X and -W."""
    given = sys.orig_argv[1 : len(sys.orig_argv) - len(sys.argv[1:])]
    # What ran this command: "-m tf_lstm_ops", "-mtf_lstm_ops" or the path of tf-lstm-ops.
    return given[: -2 if given[-2:-1] == ["-m"] else -1]
