"""Workers that are right, wrong, slow to die or dead, in processes that import no TensorFlow."""

import dataclasses
import json
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import matplotlib.image
import numpy as np
import pytest

import tf_lstm_ops
from peers import cases, runner, session, worker
from peers.capacity import Capacity
from peers.case_sets import CASES
from peers.frameworks import (
    PEERS,
    Peer,
    Prepared,
    cudnn,
    eager_op,
    fastest,
    keras_layer,
    keras_model,
)
from peers.roofline import Roofline

ROW = cases.Row("tiny", "inference", "inference", 2, 3, 8, 5, peers=("ours", "keras", "torch"))
LARGER = dataclasses.replace(ROW, name="larger", units=16)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))  # where workers find fakes.peer
    monkeypatch.setattr(runner, "ROUND_SECONDS", 0.004)
    monkeypatch.setattr(runner, "WARM_SECONDS", 0.004)


@pytest.fixture
def measured() -> Callable[..., dict[str, runner.Measurement]]:
    """Runs ROW once with peers of these behaviours, named as in ROW."""

    def run(*behaviours: str, row: cases.Row = ROW) -> dict[str, runner.Measurement]:
        with runner.Bench(fakes(*behaviours), threads=2, rounds=3) as bench:
            return bench.run(row, lambda *_: None)

    return run


def fakes(*behaviours: str) -> dict[str, Peer]:
    return {
        name: Peer(name, "fakes.peer", {"behaviour": behaviour})
        for name, behaviour in zip(ROW.peers, behaviours, strict=False)
    }


def test_values_and_ratios_are_of_the_same_rounds(measured) -> None:
    found = measured("right", "right")
    assert [m.status for m in found.values()] == ["measured"] * 2
    ours, other = found["ours"].values, found["keras"].values
    assert len(ours) == len(other) == 3
    assert min(ours) >= 0.001  # seconds for one call, however many a round has
    assert found["keras"].ratios == [b / a for a, b in zip(ours, other, strict=True)]
    assert found["ours"].ratios == [1, 1, 1]


def test_seconds_are_those_of_one_of_what_a_call_does(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(worker, "time", SimpleNamespace(perf_counter=lambda: now[0]))

    def call() -> None:
        now[0] += 10

    process = worker.Worker()
    process._prepared = Prepared(call, results=lambda _: {}, repeats=5)
    assert process.seconds(warm=25, timed=15) == 2
    assert now[0] == 50  # three calls, then two


def test_a_peer_with_other_results_is_not_timed(measured) -> None:
    found = measured("right", "wrong", "right")
    assert found["keras"].status == "differs"
    assert found["keras"].message.startswith("output by ")
    assert not found["keras"].values and not found["keras"].ratios
    assert len(found["torch"].ratios) == 3


def test_every_peer_gets_the_threads_of_the_run_unless_it_has_its_own(measured) -> None:
    peers = {**fakes("right", "right"), "torch": Peer("torch", "fakes.peer", threads=1)}
    with runner.Bench(peers, threads=2, rounds=1) as bench:
        found = bench.run(ROW, lambda *_: None)
    assert found["keras"].status == "measured"
    assert found["torch"].status == "differs"  # the fake's results tell its threads
    assert "threads" in found["torch"].message


@pytest.mark.parametrize(
    ("behaviour", "message"),
    [
        ("raises", "ValueError: no such shape"),
        pytest.param(
            *("crashes when built", "its process ended with status 3"), marks=pytest.mark.full
        ),
        ("crashes when timed", "its process ended with status 7: its last words"),
    ],
)
def test_a_failure_is_told_and_the_others_go_on(measured, behaviour: str, message: str) -> None:
    found = measured("right", behaviour, "right")
    assert found["keras"].status == "failed"
    assert message in found["keras"].message
    assert "\n" not in found["keras"].message
    assert len(found["torch"].ratios) == 3


@pytest.mark.full
def test_the_next_row_has_a_new_process_where_one_is_gone() -> None:
    with runner.Bench(fakes("right", "crashes when built"), threads=2, rounds=1) as bench:
        first, second = (bench.run(row, lambda *_: None) for row in (ROW, LARGER))
    assert first["keras"].status == "failed"
    assert second["keras"].status == "measured"


def test_without_ours_nothing_is_compared(measured) -> None:
    found = measured("raises", "right")
    assert found["ours"].status == "failed"
    assert not found["keras"].ratios


def test_a_silent_worker_is_given_up(measured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "ANSWER_SECONDS", 0.0)
    assert "no answer" in measured("right")["ours"].message


def test_a_missing_package_is_told_with_the_command_that_brings_it() -> None:
    missing = Peer("missing", "fakes.peer", needs=("no_such_module",), pip="no-such-package")
    with runner.Bench({**fakes("right"), "keras": missing}, threads=2, rounds=1) as bench:
        found = bench.run(ROW, lambda *_: None)
    assert found["keras"].status == "not installed"
    assert found["keras"].message == "pip install no-such-package"


@pytest.mark.full
def test_memory_is_what_calls_hold_at_most(measured) -> None:
    row = dataclasses.replace(ROW, measure="memory")
    found = measured("holds memory", "right", row=row)
    (held,) = found["ours"].values
    # The kernel counts pages in batches, for each thread its own, and the process needs some too.
    assert 2**26 - 2**22 < held < 2**26 + 2**24
    assert found["keras"].values[0] < 2**24


@pytest.mark.full
def test_memory_of_training_is_measured_beside_the_time() -> None:
    row = dataclasses.replace(ROW, group="training", peers=(*ROW.peers, "jax"))
    peers = fakes("right", "holds memory", "right")
    peers["jax"] = peers["torch"]
    with runner.Bench(peers, threads=2, rounds=1, memory=True) as bench:
        found = bench.run(row, lambda *_: None)
        other = bench.run(ROW, lambda *_: None)
    assert all(len(m.values) == len(m.ratios) == 1 for m in found.values())
    assert 2**26 - 2**22 < found["keras"].memory < 2**26 + 2**24
    assert found["ours"].memory < 2**24 and found["torch"].memory < 2**24
    assert found["jax"].memory is None
    assert all(m.memory is None for m in other.values())


def test_memory_is_that_of_the_first_call() -> None:
    row = dataclasses.replace(ROW, group="training")
    with runner.Bench(fakes("holds memory once"), threads=2, rounds=1, memory=True) as bench:
        held = bench.run(row, lambda *_: None)["ours"].memory
    assert 2**26 - 2**22 < held < 2**26 + 2**24


@pytest.mark.full
def test_a_failure_in_the_process_of_memory_is_told() -> None:
    row = dataclasses.replace(LARGER, group="training")  # its first call there is as small as ROW
    peers = fakes("right", "crashes when built")
    with runner.Bench(peers, threads=2, rounds=1, memory=True) as bench:
        found = bench.run(row, lambda *_: None)
    assert found["ours"].status == "measured"
    assert found["keras"].status == "failed"
    assert "status 3" in found["keras"].message


@pytest.mark.parametrize("error", [1e-4, np.nan])
def test_difference_sees_any_number(error: float) -> None:
    ours = {"output": np.float32([[1, 2]]), "gradient of x": np.float32([4])}
    assert runner.difference(ours, ours, ROW) == ""
    assert runner.difference({"output": ours["output"]}, ours, ROW) == ""
    worse = {**ours, "gradient of x": np.float32([4 * (1 + error)])}
    assert runner.difference(worse, ours, ROW).startswith("gradient of x by ")
    assert (
        runner.difference({"output": np.float32([1, 2])}, ours, ROW)
        == "output is (2,), ours (1, 2)"
    )
    assert runner.difference({}, ours, ROW)


@pytest.fixture
def no_measurement_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    roofline = SimpleNamespace(measure=lambda rows, threads: Roofline(threads, 1e11, {1024: 1e10}))
    monkeypatch.setattr(session, "roofline", roofline)


@pytest.mark.usefixtures("no_measurement_of_the_machine")
def test_an_interrupt_leaves_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = runner.Bench.run

    def interrupted(self: runner.Bench, row: cases.Row, ready: Callable) -> dict:
        if row is LARGER:
            raise KeyboardInterrupt
        return whole(self, row, ready)

    monkeypatch.setattr(runner.Bench, "run", interrupted)
    peers = fakes("right", "wrong", "right")
    session.run([ROW, LARGER], peers, Capacity(2, 1.957), rounds=2, folder=tmp_path)
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["planned"] == 2
    assert [row["name"] for row in found["rows"]] == ["tiny"]
    table = (tmp_path / "table.md").read_text()
    assert "interrupted: 1 of 2 tasks are done" in table
    assert "| tiny |" in table
    assert "* capacity: 1.96 of 2 threads\n" in table
    assert len(matplotlib.image.imread(tmp_path / "bench.png").shape) == 3
    printed = capsys.readouterr().out
    assert "1/2  tiny\n       ready: ours keras (differs) torch\n" in printed
    assert "interrupted" in printed


@pytest.mark.usefixtures("no_measurement_of_the_machine")
def test_the_capacity_is_measured_again_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "measure_capacity", lambda threads: Capacity(threads, 1.42))
    session.run([ROW], fakes("right"), Capacity(2, 1.957), rounds=1, folder=tmp_path)
    table = (tmp_path / "table.md").read_text()
    assert "* capacity: 1.96 of 2 threads\n" in table
    assert "* capacity at the end: 1.42 of 2 threads\n" in table


def results_here(name: str, row: cases.Row) -> dict[str, np.ndarray]:
    """The results of a peer whose worker is in this process."""
    process, peer = worker.Worker(), PEERS[name]
    process.build(peer.module, row, 2, dict(peer.options))
    return process.results()


@pytest.mark.full
@pytest.mark.sampled(1, strength=0)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"cell": "gru", "steps": "1..T"},
        {"layers": 2, "directions": 2, "steps": "holes"},
        {"cell": "gru", "directions": 2},
        {"projection": 3},
    ],
    ids=str,
)
def test_the_eager_op_gives_the_results_of_the_layer(
    changes: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in eager_op, keras_layer:
        monkeypatch.setattr(module, "set_threads", lambda threads: None)
    row = dataclasses.replace(ROW, peers=("ours", "ours-eager"), **changes)
    ours, eager = (results_here(name, row) for name in row.peers)
    assert runner.difference(eager, ours, row) == ""


@pytest.mark.full
@pytest.mark.parametrize(
    "changes",
    [{}, {"cell": "gru", "steps": "1..T"}, {"directions": 2}, {"projection": 3}],
    ids=str,
)
def test_the_session_gives_the_results_of_the_layer(
    changes: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keras_layer, "set_threads", lambda threads: None)
    row = dataclasses.replace(ROW, peers=("ours", "session"), **changes)
    ours, found = (results_here(name, row) for name in row.peers)
    assert runner.difference(found, ours, row) == ""


@pytest.mark.full
@pytest.mark.parametrize("name", ["session", "torch", "onnxruntime", "openvino", "tract"])
@pytest.mark.parametrize("row", CASES["models"], ids=lambda row: row.name)
def test_models_agree(row: cases.Row, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name not in row.peers:
        pytest.skip(f"{name} refuses lengths")
    if not PEERS[name].is_installed():
        pytest.skip(f"{name} is not installed")
    monkeypatch.setattr(keras_model, "set_threads", lambda threads: None)
    row = dataclasses.replace(row, batch=2, time=min(row.time, 40))
    ours, found = (results_here(each, row) for each in ("keras", name))
    assert runner.difference(found, ours, row) == ""


def test_the_fastest_call_is_chosen() -> None:
    calls = [Prepared(lambda s=s: time.sleep(s), dict) for s in (0.002, 0.0, 0.001)]
    assert fastest(calls) is calls[1]


@pytest.mark.full
@pytest.mark.parametrize("changes", [{}, {"projection": 3}], ids=str)
@pytest.mark.parametrize("name", ["ours-cudnn", "ours-custom-loop"])
def test_other_calls_of_ours_train_alike(
    name: str, changes: dict, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in cudnn, keras_layer:
        monkeypatch.setattr(module, "set_threads", lambda threads: None)
    row = dataclasses.replace(ROW, task="training", peers=("ours", name), **changes)
    ours, other = (results_here(peer, row) for peer in row.peers)
    names = ["kernel 0", "recurrent_kernel 0", "recurrent_bias 0", *["projection 0"] * len(changes)]
    assert list(other) == ["output", "gradient of x", *(f"gradient of {n}" for n in names)]
    assert runner.difference(other, ours, row) == ""


@pytest.mark.full
def test_a_custom_loop_does_not_say_that_it_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keras_layer, "set_threads", lambda threads: None)
    given = {}
    for name in ("ours", "ours-custom-loop"):
        called = given.setdefault(name, [])

        class Recorded(tf_lstm_ops.keras.LSTM):
            def __call__(self, *args: object, **arguments: object) -> object:
                called.append(arguments.get("training", "absent"))  # noqa: B023
                return super().__call__(*args, **arguments)

        monkeypatch.setattr(tf_lstm_ops.keras, "LSTM", Recorded)
        results_here(name, dataclasses.replace(ROW, task="training"))
        monkeypatch.undo()
        monkeypatch.setattr(keras_layer, "set_threads", lambda threads: None)
    assert set(given["ours"]) == {True}
    assert set(given["ours-custom-loop"]) == {"absent"}


@pytest.mark.full  # processes that import TensorFlow
def test_the_eager_op_is_measured() -> None:
    peers = {name: PEERS[name] for name in ("ours", "ours-eager")}
    row = dataclasses.replace(ROW, peers=tuple(peers))
    with runner.Bench(peers, threads=2, rounds=1) as bench:
        found = bench.run(row, lambda *_: None)
    assert {name: (m.status, m.message) for name, m in found.items()} == {
        "ours": ("measured", ""),
        "ours-eager": ("measured", ""),
    }


SMALL = {"batch": 4, "time": 7, "units": 8, "inputs": 6}


@pytest.mark.slow
def test_all_peers_agree_in_small_rows() -> None:
    """Each row of each set with small sizes, with every framework that is installed."""
    everything = [row for rows in CASES.values() for row in rows]
    rows = {
        dataclasses.replace(
            row, **SMALL, projection=min(row.projection, 3), name="", quick=False
        ): row
        for row in everything
        if not row.model  # test_models_agree has these
    }
    with runner.Bench(PEERS, threads=2, rounds=1) as bench:
        for small, row in rows.items():
            for name, found in bench.run(small, lambda *_: None).items():
                assert found.status in ("measured", "not installed"), (row.name, name, found)
                assert found.status == "not installed" or found.ratios, (row.name, name)
