"""The command line: ``tf-lstm-ops COMMAND`` or ``python -m tf_lstm_ops COMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tf_lstm_ops._version import __version__
from tf_lstm_ops.cli import (
    CommandError,
    UsageError,
    demo,
    doctor,
    info,
    output,
    selftest,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      argv: the command and its arguments; None: those of this process.

    Returns:
      The exit status: 0, or 1 if the command failed or found something. Wrong usage exits the
      process with 2.
    """
    parser = argparse.ArgumentParser(
        prog="tf-lstm-ops",
        description="LSTM operations for TensorFlow and Keras.",
        epilog=output.examples("tf-lstm-ops doctor model.keras", "tf-lstm-ops info --json"),
        formatter_class=output.Help,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for command in (info, doctor, demo, selftest):
        command.add_parser(commands)
    arguments = parser.parse_args(argv)
    if "run" not in arguments:
        parser.print_help()
        return 0
    try:
        return arguments.run(arguments)
    except UsageError as error:
        commands.choices[arguments.command].error(str(error))
    except CommandError as error:
        print(f"tf-lstm-ops: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
