"""How this package refuses what it does not compute or read.

This module imports nothing of the package.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, NoReturn


class Refused(ValueError):
    """Something that this package does not compute or read.

    Its text is "where: why. instead".

    Args:
      why: the reason.
      where: what is refused, such as "layer lstm"; empty: `naming` adds it.
      instead: what to do; empty: nothing.

    Attributes:
      where, why, instead: the arguments.
    """

    def __init__(self, why: str, *, where: str = "", instead: str = "") -> None:
        super().__init__(why)
        self.why, self.where, self.instead = why, where, instead

    def __str__(self) -> str:
        text = f"{self.where}: {self.why}" if self.where else self.why
        return f"{text}. {self.instead}" if self.instead else text


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
    """A context whose errors say what is refused. The innermost context names it.

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
        if not error.where:
            error.where, error.instead = where, error.instead or instead
        raise
    except kinds as error:
        raise Refused(str(error), where=where, instead=instead) from error


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
        error.where = f"{place}: {error.where}" if error.where else place
        raise
    except ValueError as error:
        raise Refused(str(error), where=place) from error
