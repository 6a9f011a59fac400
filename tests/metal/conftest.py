"""The stand-in for Apple's frameworks, built once for all tests that carry the mark metal."""

import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from metal import build
from metal.objc import Runtime


@pytest.fixture(scope="session")
def make(request: pytest.FixtureRequest) -> Callable[[Callable[[Path], object]], object]:
    """Calls one of build's functions, unless another process does."""
    if not build.is_possible():
        pytest.fail(f"needs these packages: {build.PACKAGES}")
    folder = request.config.cache.mkdir("metal")

    def run(function: Callable[[Path], object]) -> object:
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return function(folder)

    return run


@pytest.fixture(scope="session")
def stand_in(make) -> Path:
    return make(build.build_stand_in)


@pytest.fixture(scope="session")
def plugins(make) -> dict[str, Path]:
    return dict(zip(build.PLUGINS, make(build.build_plugins), strict=True))


@pytest.fixture(scope="session")
def kernels(make) -> Path:
    return make(build.build_kernels)


@pytest.fixture
def runtime(stand_in: Path) -> Iterator[Runtime]:
    runtime = Runtime(stand_in)
    with runtime.pool():
        yield runtime
