"""Common to all tests: tests and benchmarks on sys.path, random numbers, marks."""

import gc
import itertools
import os
import random
import subprocess
import sys
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if any(map(os.path.exists, ("/dev/nvidiactl", "/dev/dxg"))):
    if "PYTEST_XDIST_WORKER" not in os.environ:  # the kernels need the stream library
        program = "from tf_lstm_ops import _cuda_stream; _cuda_stream.build()"
        subprocess.run([sys.executable, "-c", program], check=True)
    os.environ.setdefault("TF_LSTM_OPS_GPU", "1")  # the tests test the kernels
NOT_IN_CI = {"slow", "zoo", "metal", "cuda"}  # marks that .ci/run does not run
TESTS = Path(__file__).resolve().parent
# "python -m pytest" would put the source folder of the package before the installed one.
sys.path[:] = [p for p in sys.path if Path(p or ".").resolve() != TESTS.parent]
# At the end, so that no folder of these hides an installed package of the same name.
sys.path += [str(TESTS), *(str(TESTS.parent / name) for name in ("benchmarks", "scripts"))]

# The suites on a device of their own.
pytest_plugins = ["devices.on_device"] if os.environ.get("TF_LSTM_OPS_TEST_PLUGIN") else []


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what -m does not select
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the cases of grids, and leaves out the parts of `full` that are not asked for."""
    distribute_samples(items)
    require_marks_of_downloads(items)
    leave_out_parts(config, items)


def require_marks_of_downloads(items: list[pytest.Item]) -> None:
    """A test that downloads something is no part of the default run or of `full`."""
    for item in items:
        if item.get_closest_marker("downloads") and not any(
            map(item.get_closest_marker, NOT_IN_CI)
        ):
            raise pytest.UsageError(
                f"{item.nodeid} downloads something, and has no mark such as slow"
            )


def leave_out_parts(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With TF_LSTM_OPS_FULL_PART=K/N, one of N parts of the tests marked `full` runs."""
    if not (part := os.environ.get("TF_LSTM_OPS_FULL_PART")):
        return
    number, count = map(int, part.split("/"))
    left_out = [
        item
        for item in items
        if item.get_closest_marker("full") and zlib.crc32(item.nodeid.encode()) % count != number
    ]
    out = set(map(id, left_out))
    items[:] = [item for item in items if id(item) not in out]
    config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """With --durations, the seconds of the tests in each folder, of all workers together."""
    if config.option.durations is None:
        return
    seconds: defaultdict[str, float] = defaultdict(float)
    reports = itertools.chain.from_iterable(terminalreporter.stats.values())
    for report in reports:
        if hasattr(report, "duration") and hasattr(report, "nodeid"):
            seconds[report.nodeid.removeprefix("tests/").partition("/")[0]] += report.duration
    terminalreporter.section("seconds by folder")
    total = sum(seconds.values())
    for folder, value in sorted(seconds.items(), key=lambda pair: -pair[1]):
        terminalreporter.line(f"{value:7.1f}  {folder}")
    terminalreporter.line(f"{total:7.1f}  all, of all workers together")


def distribute_samples(items: list[pytest.Item]) -> None:
    """Distributes the cases of each test with the mark sampled(n) over the default run, `full` and
    `slow`."""
    grids: defaultdict[str, list[pytest.Function]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled"):
            grids[item.nodeid.partition("[")[0]].append(item)
    for cases in grids.values():
        mark = cases[0].get_closest_marker("sampled")
        each, strength = mark.args[0] if mark.args else 5, mark.kwargs.get("strength", 1)
        by_default = set(covering(cases, strength))
        for number, case in enumerate(cases):
            if case not in by_default:
                case.add_marker(pytest.mark.slow if number % each else pytest.mark.full)


def pytest_collection() -> None:
    """Objects that are collected live long. The garbage collector would visit them in vain."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What is imported and collected lives to the end. The garbage collector need not visit it."""
    gc.collect()
    gc.freeze()
    gc.enable()


def covering(cases: list[pytest.Function], strength: int) -> Iterator[pytest.Function]:
    """Cases with every value of each parameter; or of `strength` parameters, every combination of
    values that the grid has."""
    shown: set[tuple[str, ...]] = set()
    # In no order of their own, since neighbours differ in one parameter only.
    for case in sorted(cases, key=lambda case: zlib.crc32(case.nodeid.encode())):
        values = [v for name, value in case.callspec.params.items() for v in parts(name, value)]
        combinations = set(itertools.combinations(values, min(strength, len(values))))
        if not combinations <= shown:
            shown |= combinations
            yield case


def parts(name: str, value: object) -> Iterator[str]:
    """A parameter's name and value; those of its parts where it has some."""
    if is_dataclass(value) and not isinstance(value, type):
        value = vars(value)
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict) and value:
        for key, part in value.items():
            yield from parts(f"{name}.{key}", part)
    else:
        yield f"{name}={value!r}"


@pytest.fixture(autouse=True)
def seed_initializers(request: pytest.FixtureRequest) -> None:
    """Keras draws the seeds of initializers from Python's generator."""
    random.seed(request.node.name)


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers that depend on the test's own name only, not on the order of the tests."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))
