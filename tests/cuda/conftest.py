"""The fakes and the CUDA library, built once for all tests with the mark cuda."""

import fcntl
from pathlib import Path

import pytest

from cuda import build


@pytest.fixture(scope="session")
def built(request: pytest.FixtureRequest) -> Path:
    """The folder of everything that build.py builds."""
    folder = request.config.cache.mkdir("cuda")
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes run in parallel
        build.build_all(folder)
    return folder
