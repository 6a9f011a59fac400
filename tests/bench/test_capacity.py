"""The capacity of the processors: its value, and the benchmarks that refuse a low one."""

import contextlib
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from peers import capacity, command, session
from peers.capacity import Capacity
from tf_lstm_ops import _capacity

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_value_is_the_rate_of_all_by_the_best_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = iter([5.0, 10.0, 9.0, 8.0, 7.0])
    together = iter([(8.0, 7.0), (8.0, 9.0), (1.0, 1.0), (8.0, 8.0), (10.0, 10.0)])
    ran_alone = []

    def rates(loops: list[int]) -> list[float]:
        if len(loops) == 2:
            return list(next(together))
        ran_alone.extend(loops)
        return [next(alone)]

    started: list[str] = []

    def start(processor: str) -> contextlib.AbstractContextManager[int]:
        started.append(processor)
        return contextlib.nullcontext(len(started))

    monkeypatch.setattr(_capacity, "_start", start)
    monkeypatch.setattr(_capacity, "_rates", rates)
    monkeypatch.setattr(_capacity, "processors", lambda threads: [4, 6])
    assert _capacity.measure(2) == Capacity(2, 16 / 10)
    assert started == ["4", "6"]
    assert ran_alone == [1, 2, 1, 2, 1]


def test_loops_share_processors_where_there_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    def start(processor: str) -> contextlib.AbstractContextManager[None]:
        started.append(processor)
        return contextlib.nullcontext()

    monkeypatch.setattr(_capacity, "_start", start)
    monkeypatch.setattr(_capacity, "_rates", lambda loops: [1.0] * len(loops))
    for found in ([3], []):
        monkeypatch.setattr(_capacity, "processors", lambda threads, found=found: found)
        _capacity.measure(2)
    assert started == ["3", "3", "", ""]


@pytest.mark.full
def test_loops_run_in_processes() -> None:
    found = _capacity.measure(1)
    assert found.threads == 1
    assert found.value > 0


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system cannot pin a process")
def test_a_loop_runs_on_its_processor() -> None:
    (processor,) = _capacity.processors(1)
    with _capacity._start(str(processor)) as loop:
        assert _capacity._rates([loop])[0] > 0
        assert os.sched_getaffinity(loop.pid) == {processor}


def test_different_cores_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 6}, raising=False)
    monkeypatch.setattr(_capacity, "_core", lambda processor: str(processor // 2))
    assert _capacity.processors(2) == [0, 2]
    assert _capacity.processors(4) == [0, 2, 6, 1]
    assert _capacity.processors(9) == [0, 2, 6, 1, 3]
    assert _capacity.core_count() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    assert _capacity.processors(2) == []
    assert _capacity.core_count() == os.cpu_count()


@pytest.mark.parametrize(
    ("found", "is_enough"),
    [(Capacity(2, 1.79), False), (Capacity(2, 1.81), True), (Capacity(8, 7.1), False)],
)
def test_check(
    found: Capacity,
    is_enough: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(capacity, "measure", lambda threads: found)
    with contextlib.nullcontext() if is_enough else pytest.raises(capacity.TooLow) as refusal:
        assert capacity.check(found.threads, any_capacity=False) == found
    assert capsys.readouterr().out == f"capacity: {found}\n"
    if refusal:
        least = {2: "1.8", 8: "7.2"}[found.threads]
        assert f"{found}; a benchmark needs {least}." in str(refusal.value)
        assert "--any-capacity" in str(refusal.value)
    assert capacity.check(found.threads, any_capacity=True) == found


def test_a_capacity_as_text() -> None:
    assert str(Capacity(2, 1.957)) == "1.96 of 2 threads"


def test_the_file_needs_the_standard_library_only() -> None:
    code = f"import runpy; runpy.run_path({capacity.__file__!r})"
    subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True)


@pytest.fixture
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "measure", lambda threads: Capacity(threads, 0.7 * threads))


@pytest.mark.usefixtures("low")
def test_the_command_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[Capacity] = []

    def run(rows: list, peers: dict, found: Capacity, *_: object) -> object:
        measured.append(found)
        return SimpleNamespace(results=rows)

    monkeypatch.setattr(session, "run", run)
    arguments = ["--tasks", "fit*", "--threads", "3", "--output", str(tmp_path)]
    assert command.main(arguments) == 1
    printed = capsys.readouterr()
    assert "capacity: 2.10 of 3 threads\n" in printed.out
    assert "a benchmark needs 2.7." in printed.err
    assert not measured
    assert command.main([*arguments, "--any-capacity"]) == 0
    assert measured == [pytest.approx((3, 2.1))]


@pytest.mark.parametrize("file", ["scaling.py", "engine/__main__.py"])
def test_a_script_refuses(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script: dict[str, Any] = runpy.run_path(str(BENCHMARKS / file))
    names = script["main"].__globals__
    check = names["CAPACITY"]["check"] if "CAPACITY" in names else capacity.check
    monkeypatch.setitem(check.__globals__, "measure", lambda threads: Capacity(threads, 1.5))
    started: list[object] = []

    def go_on(*arguments: object) -> None:
        started.append(arguments)
        raise KeyboardInterrupt

    # The first thing that each of them does after the check.
    monkeypatch.setitem(names, "measure", go_on)
    if "NATIVE" in names:
        monkeypatch.setitem(names["NATIVE"], "build_checkout", go_on)
    monkeypatch.setattr(sys, "argv", [file, "--threads", "2"])
    with pytest.raises(SystemExit) as refusal:
        script["main"]()
    assert refusal.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == "capacity: 1.50 of 2 threads\n"
    assert "a benchmark needs 1.8." in printed.err
    assert not started
    sys.argv.append("--any-capacity")
    with pytest.raises(KeyboardInterrupt):
        script["main"]()
    assert started
