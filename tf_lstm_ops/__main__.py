"""The command line: ``tf-lstm-ops COMMAND`` or ``python -m tf_lstm_ops COMMAND``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from tf_lstm_ops._program import IS_PROGRAM
from tf_lstm_ops.cli import CommandError, UsageError, arguments, startup


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: the command and its arguments; None: those of this process.

    Returns:
      The exit status: 0, or 1 if the command failed or found something. Wrong usage exits the
      process with 2.
    """
    if IS_PROGRAM:
        startup.open_streams()
        startup.end_on_interrupt()
    parser = arguments.parser()
    given = parser.parse_args(argv)
    if given.command is None:
        parser.print_help()
        return 0
    try:
        given.check(given)
        if IS_PROGRAM and given.loads:
            startup.load()
        status: int = importlib.import_module(f"tf_lstm_ops.cli.{given.module}").run(given)
        sys.stdout.flush()
        return status
    except UsageError as error:
        of_command: argparse.ArgumentParser = given.parser
        of_command.error(str(error))
    except BrokenPipeError:  # the reader, such as `head`, has what it wants
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes at its end
        return 1
    except CommandError as error:
        print(f"tf-lstm-ops: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
