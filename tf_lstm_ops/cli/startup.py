"""Settings that must be made before TensorFlow is imported. This module does not import it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

INTERRUPTED = 130  # a shell's exit status after an interrupt

# KERAS_BACKEND before `use_tensorflow_backend`.
users_backend = os.environ.get("KERAS_BACKEND")


def is_program() -> bool:
    """Whether this process is the command line.

    Returns:
      True in ``tf-lstm-ops`` and ``python -m tf_lstm_ops``, False in a user's program.
    """
    # argv[0] is "-m" until Python has found the module to run, which imports its package.
    started_by_name = sys.argv[0] == "-m" and "tf_lstm_ops" in sys.orig_argv
    return started_by_name or Path(sys.argv[0]).stem == "tf-lstm-ops"


def use_tensorflow_backend() -> None:
    """Sets Keras' backend for the command line, whose models run on TensorFlow.

    A user's program is not changed.
    """
    if is_program():
        os.environ["KERAS_BACKEND"] = "tensorflow"


def end_on_interrupt() -> None:
    """Makes an interrupt end the command line with one line and the exit status 130.

    This also holds for an interrupt while TensorFlow is imported, which takes seconds. A user's
    program is not changed.
    """
    if is_program():
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
def quiet_tensorflow() -> Iterator[None]:
    """A context that hides TensorFlow's own log while the command line imports it.

    TensorFlow 2.21 writes the first lines of its log regardless of TF_CPP_MIN_LOG_LEVEL. Therefore
    the file descriptor itself is redirected. The hidden text is printed if the import fails.
    Nothing is hidden in a user's program, nor if the user has set TF_CPP_MIN_LOG_LEVEL.

    Yields:
      None.
    """
    if not is_program() or "TF_CPP_MIN_LOG_LEVEL" in os.environ:
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
