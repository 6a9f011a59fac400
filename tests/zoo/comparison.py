"""Compares a model with its equations in float64, and with the original in time."""

import importlib.util
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def compare(name: str, run: Callable[[Any], Any], found: Any, theirs: Any, ours: Any) -> None:
    """Requires the error of `found` to be at most twice that of the reference in float32.

    These are the largest errors of thousands of results: that of a few may be any.

    Args:
      name: the package.
      run: the reference, for the dtype that it is called with.
      found: the results of the model that came in by the road.
      theirs: what the package runs; a function without arguments.
      ours: what takes its place.
    """
    exact, found = run(np.float64), np.asarray(found)
    assert found.shape == exact.shape
    single = np.abs(run(np.float32) - exact).max()
    error = np.abs(found - exact).max()
    ratio = seconds(theirs) / seconds(ours)
    print(f"\n| {name} | {error:.1e} | {single:.1e} | {ratio:.1f} |", flush=True)
    assert exact.dtype == np.float64
    assert error <= 2 * single


def seconds(call: Any, calls: int = 20) -> float:
    """The least time of a call, of several."""
    call()
    times = []
    for _ in range(calls):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def load_module(path: Path, monkeypatch: pytest.MonkeyPatch, absent: dict[str, Any]) -> Any:
    """A module of a package, with empty modules for those that it imports in vain.

    Args:
      path: the file of the module; its folder becomes its package.
      monkeypatch: removes all modules behind the test.
      absent: the names of modules that are not needed, and what they must have.

    Returns:
      The module.
    """
    for name, content in absent.items():
        module = types.ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    package = types.ModuleType(path.parent.name)
    package.__path__ = [str(path.parent)]
    monkeypatch.setitem(sys.modules, package.__name__, package)
    name = f"{package.__name__}.{path.stem}"
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, module)
    spec.loader.exec_module(module)
    for other in {each for each in sys.modules if each.startswith(package.__name__)} - before:
        monkeypatch.setitem(sys.modules, other, sys.modules[other])
    return module
