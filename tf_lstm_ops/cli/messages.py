"""Messages of errors, in a form that fits a terminal."""

from __future__ import annotations

import re
from typing import Any

from tf_lstm_ops._capacity import WHY_LOW, Capacity

# A code object as Keras writes it into a configuration: marshal's bytes, encoded with base64.
BYTE_CODE = re.compile(r"'(?:4w|Yw)[\w+/=\\]{20,}'")
_COLOURS = re.compile(r"\x1b\[\d*m")


def cause(error: Exception) -> str:
    """The message without the configurations that Keras repeats before the cause.

    Args:
      error: the error.

    Returns:
      The message, or its last part.
    """
    return str(error).rpartition("Exception encountered: ")[2]


def one_line(error: Exception, limit: int = 400) -> str:
    """The message of an error on one line, without byte code.

    Args:
      error: the error.
      limit: the number of characters after which the message is cut.

    Returns:
      The message; the type of the error if it has none.
    """
    text = _COLOURS.sub("", BYTE_CODE.sub("'...'", cause(error)))
    text = " ".join(text.split()) or type(error).__name__
    return text if len(text) <= limit else f"{text[:limit]}..."


def busy(capacity: Capacity) -> str | None:
    """Why times that were just measured may be wrong.

    Args:
      capacity: of the processors.

    Returns:
      The reason; None if each thread had a core.
    """
    if not capacity.is_low:
        return None
    return f"the processors do the work of {capacity} only. {WHY_LOW} Measure again without them."


def no_stream(session: Any) -> str | None:
    """Why a session computes whole sequences only.

    Args:
      session: a session.

    Returns:
      The reason; None if it has streams.
    """
    if session.can_stream:
        return None
    try:
        session.stream()
    except ValueError as error:
        return one_line(error)
    return None
