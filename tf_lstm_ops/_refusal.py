"""How this package refuses what it does not compute or read.

This module imports nothing of the package.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn


class Refused(ValueError):
    """Something that this package does not compute or read.

    Its text is its only argument: TensorFlow and Keras make errors of a class again, with a text.

    Attributes:
      is_named: whether the text says what is refused.
    """

    __init__ = Exception.__init__  # autograph makes errors with this constructor again
    is_named = False

    def prefix(self, place: str, instead: str = "") -> None:
        """Puts a place in front of the text.

        Args:
          place: such as "layer lstm", or a file.
          instead: what to do; it comes last.
        """
        text = f"{place}: {self}"
        self.args = (f"{text}. {instead}" if instead else text,)


def refused(why: str, where: str, instead: str = "") -> Refused:
    """An error that says what is refused.

    Args:
      why: the reason.
      where: what is refused, such as "layer lstm".
      instead: what to do; empty: nothing.

    Returns:
      The error, whose text is "where: why. instead".
    """
    error = Refused(why)
    error.prefix(where, instead)
    error.is_named = True
    return error


def refuse(why: str) -> NoReturn:
    """Refuses what `naming` names.

    Args:
      why: the reason.

    Raises:
      Refused: always.
    """
    raise Refused(why)


def require(condition: Any, why: str) -> None:
    """Checks something.

    Args:
      condition: what must be true.
      why: the reason if it is not.

    Raises:
      Refused: condition is false.
    """
    if not condition:
        raise Refused(why)


@contextlib.contextmanager
def naming(
    where: str, instead: str = "", *, kinds: tuple[type[Exception], ...] = (ValueError,)
) -> Iterator[None]:
    """A context whose errors say what is refused. The innermost of these contexts names it.

    Args:
      where: what is refused.
      instead: what to do.
      kinds: the errors that become `Refused`.

    Yields:
      None.

    Raises:
      Refused: something within raised it, or one of `kinds`.
    """
    try:
        yield
    except Refused as error:
        if not error.is_named:
            error.prefix(where, instead)
            error.is_named = True
        raise
    except kinds as error:
        raise refused(str(error), where, instead) from error


@contextlib.contextmanager
def within(place: str) -> Iterator[None]:
    """A context whose errors begin with the place where something is refused.

    Args:
      place: such as a file.

    Yields:
      None.

    Raises:
      Refused: something within raised a ValueError.
    """
    try:
        yield
    except Refused as error:
        error.prefix(place)
        raise
    except ValueError as error:
        wrapped = Refused(str(error))
        wrapped.prefix(place)
        raise wrapped from error


_MOST = 10  # refusals in a message


class Refusals:
    """The refusals of parts, such as layers, which are said at once.

    >>> refusals = Refusals("layers")
    >>> for name in ("first", "second"):
    ...     with refusals.part(), naming(name):
    ...         refuse("it is unknown")
    >>> refusals.finish()
    Traceback (most recent call last):
        ...
    tf_lstm_ops._refusal.Refused: 2 layers are refused:
    first: it is unknown
    second: it is unknown

    Args:
      parts: what they are, for the message.
    """

    def __init__(self, parts: str) -> None:
        self._parts = parts
        self._found: dict[str, ValueError] = {}  # by their texts, each once

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        """A context that ends where a part is refused. What follows it is done nevertheless.

        Yields:
          None.
        """
        try:
            yield
        except ValueError as error:
            self._found.setdefault(str(error), error)

    def finish(self) -> None:
        """Says all.

        Raises:
          Refused: several parts were refused.
          ValueError: one was; its own error.
        """
        if len(self._found) == 1:
            raise next(iter(self._found.values()))
        if self._found:
            said = [*self._found]
            more = [f"and {len(said) - _MOST} more"] if len(said) > _MOST else []
            first = f"{len(said)} {self._parts} are refused:"
            raise Refused("\n".join([first, *said[:_MOST], *more]))
