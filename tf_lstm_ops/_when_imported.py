"""Calls a function at the end of the import of a module, whoever imports it."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def when_imported(name: str, function: Callable[[], None]) -> None:
    """Calls a function now if a module is imported already, else at the end of its import.

    An exception in the later call becomes a warning: the module itself is imported without it.

    Args:
      name: the full name of the module.
      function: what to call.
    """
    if sys.modules.get(name) is not None:
        function()
    else:
        sys.meta_path.insert(0, _Finder(name, function))


class _Finder(MetaPathFinder):
    """Finds one module as the other finders do, and gives it a loader that calls the function.

    It is in use until the module is imported: programs also search for a module that they never
    import. It is not removed: another import that walks through the list would skip a finder.
    """

    def __init__(self, name: str, function: Callable[[], None]) -> None:
        self._name, self._function = name, function
        self._is_done = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name or self._is_done:
            return None
        # Those behind this one. Two finders that asked each other would never end.
        for finder in [*itertools.dropwhile(lambda each: each is not self, sys.meta_path)][1:]:
            find = getattr(finder, "find_spec", None)  # Python skips a finder without it too
            spec = find(fullname, path, target) if find else None
            if spec is not None:
                if spec.loader is not None:  # not of a folder without __init__.py
                    spec.loader = _Loader(spec.loader, self)
                return spec
        return None

    def call(self) -> None:
        if self._is_done:
            return
        self._is_done = True
        try:
            self._function()
        except Exception as error:
            warnings.warn(
                f"tf_lstm_ops cannot be used after `import {self._name}`: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
        except BaseException:  # an interrupt, which ends the import: the next one calls again
            self._is_done = False
            raise


class _Loader(Loader):
    """A module's own loader, which is in its place again when the module is executed."""

    def __init__(self, loader: Loader, finder: _Finder) -> None:
        self._loader, self._finder = loader, finder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._finder.call()
