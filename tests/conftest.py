"""Common to all tests: the tests folder on sys.path, random numbers, hypothesis' settings."""

import os
import sys
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
TESTS = Path(__file__).resolve().parent
# "python -m pytest" would put the source folder of the package before the installed one.
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != TESTS.parent]
# Appended, so that no folder of tests hides an installed package of the same name.
sys.path.append(str(TESTS))

# The suites on a device of their own.
pytest_plugins = ["devices.on_device"] if os.environ.get("TF_LSTM_OPS_TEST_PLUGIN") else []

# Every run draws the same examples: a failure in CI is a failure at the desk.
settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,  # the first call of an op compiles nothing but may load much
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("default")


@pytest.hookimpl(tryfirst=True)  # before pytest leaves the slow ones out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Makes all but every n-th case of a test with the mark sampled(n) slow."""
    cases: Counter[str] = Counter()
    for item in items:
        sampled = item.get_closest_marker("sampled")
        test = item.nodeid.partition("[")[0]
        if sampled and cases[test] % sampled.args[0]:
            item.add_marker(pytest.mark.slow)
        cases[test] += 1


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that depend on the test's own name only, not on the order of the tests."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))
