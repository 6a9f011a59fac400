"""Values of other programs by name, each of which is taken or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tf_lstm_ops._refusal import Refused, refuse
from tf_lstm_ops.inference.layers import checks


class Reader:
    """Options, fields or arrays by name, which know what was taken of them.

    A layer computes something else where an option is ignored, so `finish` refuses what nobody
    took.

    Args:
      values: by name.
      defaults: values that change nothing.

    Attributes:
      values: the argument.
      taken: the names that were taken, in this order. Ignored ones are not among them.
    """

    def __init__(
        self, values: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> None:
        self.values, self._defaults = values, defaults or {}
        self.taken: list[str] = []
        self._ignored: set[str] = set()

    def take(self, name: str, default: Any = None) -> Any:
        """Takes a value.

        Args:
          name: of the value.
          default: what an absent one is.

        Returns:
          The value.
        """
        if name not in self.taken:
            self.taken.append(name)
        return self.values.get(name, default)

    def integer(self, name: str, default: Any = None) -> int:
        """Takes an integer, or the only one of a list.

        Args:
          name: of the value.
          default: what an absent one is.

        Returns:
          The integer.

        Raises:
          Refused: it is something else.
        """
        try:
            return checks.integer(name, self.take(name, default))
        except TypeError as error:
            raise Refused(str(error)) from error

    def require(self, name: str, value: Any) -> None:
        """Refuses another value than the only one that a session computes.

        Args:
          name: of the value.
          value: the only one, also what an absent one is.

        Raises:
          Refused: it is another one.
        """
        given = self.take(name, value)
        if given != value:
            refuse(f"a session has {name}={value!r} only. Received: {name}={given!r}")

    def ignore(self, names: Iterable[str]) -> None:
        """Takes values that change no result.

        Args:
          names: of the values.
        """
        self._ignored.update(names)

    def finish(self, words: Callable[[Sequence[str]], str]) -> None:
        """Refuses what nobody took and is not the default.

        Args:
          words: the reason for some names.

        Raises:
          Refused: there is such a value.
        """
        known = {*self.taken, *self._ignored}
        unread = [name for name in self.values if name not in known]
        if unread := [name for name in unread if not self._is_default(name)]:
            refuse(words(unread))

    def _is_default(self, name: str) -> bool:
        if name not in self._defaults:
            return False
        value, default = self.values[name], self._defaults[name]
        try:
            return value is default or bool(value == default)
        except (ValueError, RuntimeError):  # an array or a tensor
            return False
