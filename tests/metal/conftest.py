"""The fake frameworks, plugins and the Metal library, built once for all tests marked metal."""

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

from metal import build


@pytest.fixture(scope="session")
def make(request: pytest.FixtureRequest) -> Callable[[Callable[[Path], object]], object]:
    """Calls one of build's functions, one process at a time."""
    if not build.is_possible():
        pytest.fail(f"needs these packages: {build.PACKAGES}")
    folder = request.config.cache.mkdir("metal")

    def run(function: Callable[[Path], object]) -> object:
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return function(folder)

    return run


@pytest.fixture(scope="session")
def fakes(make) -> Path:
    return make(build.build_fakes)


@pytest.fixture(scope="session")
def plugins(make) -> dict[str, Path]:
    return dict(zip(build.PLUGINS, make(build.build_plugins), strict=True))


@pytest.fixture(scope="session")
def kernels(make) -> Path:
    return make(build.build_kernels)
