"""Commands of the command line, one module each. Importing this package imports no TensorFlow."""

from tf_lstm_ops import _optional


class CommandError(Exception):
    """A command cannot continue. The message says why and what to do next."""


class UsageError(CommandError):
    """An argument of a command has a value that it cannot have, on whichever machine."""


def require_matplotlib() -> None:
    """Checks that a command can draw its picture, before it starts to work.

    Raises:
      CommandError: matplotlib cannot be imported.
    """
    try:
        _optional.require("matplotlib.figure", "the picture", "matplotlib")
    except ImportError as error:
        raise CommandError(str(error)) from error
