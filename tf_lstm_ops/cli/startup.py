"""The start of the command line: what must be set before TensorFlow is imported."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType

from tf_lstm_ops import _start
from tf_lstm_ops.cli import CommandError, output

INTERRUPTED = 130  # a shell's exit status after an interrupt

# KERAS_BACKEND before `load`.
users_backend = os.environ.get("KERAS_BACKEND")


def open_streams() -> None:
    """Opens the standard streams that the shell has closed, as in ``2>&-``, without a target."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if number == 0 else "w"))  # noqa: SIM115


def load() -> None:
    """Loads the package, with its models on TensorFlow and without TensorFlow's log.

    Raises:
      CommandError: TensorFlow is missing or too old.
    """
    os.environ["KERAS_BACKEND"] = "tensorflow"
    output.progress("imports TensorFlow")
    try:
        with _quiet_tensorflow():
            _start.load()
    except ImportError as error:
        raise CommandError(str(error)) from error
    finally:
        output.progress("")


def end_on_interrupt() -> None:
    """Makes an interrupt end the process with one line and the exit status 130.

    This also holds for an interrupt while TensorFlow is imported, which takes seconds.
    """
    sys.excepthook = _end


def _end(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    with suppress(OSError):  # a closed pipe
        sys.stdout.flush()
        if sys.stderr.isatty():  # removes what output.progress shows, without an import
            print(f"\r{'':79}\r", end="", file=sys.stderr)
        print("tf-lstm-ops: interrupted", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)  # an excepthook has no other way to choose the status


@contextmanager
def _quiet_tensorflow() -> Iterator[None]:
    """A context that hides TensorFlow's own log while TensorFlow is imported.

    TensorFlow 2.21 writes the first lines of its log regardless of TF_CPP_MIN_LOG_LEVEL. Therefore
    the file descriptor itself is redirected. The hidden text is printed if the import fails.
    Nothing is hidden if the user has set TF_CPP_MIN_LOG_LEVEL.
    """
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        yield
        return
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as hidden:
        os.dup2(hidden.fileno(), 2)
        try:
            yield
        except Exception:
            hidden.seek(0)
            os.write(stderr, hidden.read())
            raise
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
