"""Programs that are compiled once a run, whatever the number of pytest's workers."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def built_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """The path of a program. The first worker that needs it builds it, others wait for it.

    Args:
      name: another for each program and each set of options.
      build: writes the program to the path that it is given.
    """
    base = factory.getbasetemp()
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    # The folders of all workers are in one folder.
    folder = (base.parent if worker else base) / "programs"
    if fcntl is None:
        folder /= worker
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    with (folder / f"{name}.lock").open("w") as lock:
        if fcntl is not None:
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            unfinished = folder / f"{name}_unfinished"
            build(unfinished)
            unfinished.replace(program)
    return program
