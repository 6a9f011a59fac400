"""Gives a constructor one more argument, as a later version of a class has."""

from __future__ import annotations

import inspect
from typing import Any

import pytest


def add(monkeypatch: pytest.MonkeyPatch, kind: Any, name: str, default: Any = None) -> None:
    """Adds an argument, which the class keeps as an attribute.

    Args:
      monkeypatch: pytest's.
      kind: the class.
      name: of the argument.
      default: its default.
    """
    known = kind.__init__

    def constructor(self: Any, *args: Any, **kwargs: Any) -> None:
        value = kwargs.pop(name, default)
        known(self, *args, **kwargs)
        setattr(self, name, value)

    signature = inspect.signature(known)
    *rest, others = signature.parameters.values()
    added = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
    constructor.__signature__ = signature.replace(parameters=[*rest, added, others])  # type: ignore[attr-defined]
    monkeypatch.setattr(kind, "__init__", constructor)
