"""benchmarks/publish.py: the published results of each family of processors, and their page."""

import dataclasses
import json
import os
import re
from pathlib import Path

import pytest

import publish
from pages import ROOT
from peers import cases, machine, report
from peers.capacity import Capacity
from peers.roofline import Roofline
from peers.rows import ROWS
from peers.runner import Measurement

FIRST, SECOND, THIRD = ROWS[:3]


def run(
    *rows: cases.Row, commit: str = "abc1234", date: str = "2026-11-26 10:00", peers=("keras",)
):
    """A report of rows in which all peers take twice as long as we do."""
    ours = Measurement("measured", values=[0.25], ratios=[1.0])
    theirs = Measurement("measured", values=[0.5], ratios=[2.0])
    found = {"ours": ours, **dict.fromkeys(peers, theirs)}
    about = {"family": "avx2", "processor": "made up", "commit": commit, "date": date}
    measured = [dataclasses.replace(row, peers=tuple(found)) for row in rows]
    results = [report.RowResult(row, found, commit, date) for row in measured]
    sizes = {4 * 4 * row.units**2: 1e9 for row in rows}
    return report.Report(about, Roofline(2, 1e9, sizes), len(rows), results)


def test_a_report_is_what_its_file_says() -> None:
    one = run(FIRST, SECOND)
    assert report.Report.from_json(one.as_json()) == one


def test_rows_of_a_later_run_replace_and_add() -> None:
    old = run(SECOND, THIRD)
    new = run(FIRST, SECOND, commit="def5678", date="2026-11-27 09:00", peers=("torch",))
    found = publish.merge(old, new)
    assert [r.row.name for r in found.results] == [FIRST.name, SECOND.name, THIRD.name]
    assert [r.commit for r in found.results] == ["def5678", "def5678", "abc1234"]
    assert [list(r.found) for r in found.results] == [["ours", "torch"]] * 2 + [["ours", "keras"]]
    table = found.as_table()
    assert "* commit: abc1234; def5678\n" in table
    assert "* date: 2026-11-26 10:00; 2026-11-27 09:00\n" in table
    assert f"* {THIRD.name}: commit abc1234, 2026-11-26 10:00\n" in table
    assert table.count("commit") == 2


def test_nothing_is_left_of_a_run_whose_rows_were_all_replaced() -> None:
    new = run(FIRST, SECOND, commit="def5678", date="2026-11-27 09:00")
    assert publish.merge(run(SECOND), new) == new


@pytest.mark.parametrize("changes", ["", "+changes"])
def test_peers_are_added_to_a_row_of_the_same_code(changes: str) -> None:
    """Two clones with changes may differ."""
    commit = "abc1234" + changes
    old, new = run(FIRST, commit=commit), run(FIRST, commit=commit, date="2026-11-27 09:00")
    new.results[0].found["torch"] = new.results[0].found.pop("keras")
    old.results[0].found["jax"] = old.results[0].found["keras"]
    new.results[0].found["jax"] = Measurement("not installed", "pip install jax")
    [found] = publish.merge(old, new).results
    assert next(iter(found.found)) == "ours"  # results.json says by this which peer is ours
    assert set(found.found) == {"ours", "torch", "jax"} | (set() if changes else {"keras"})
    assert found.found["jax"].status == ("not installed" if changes else "measured")
    dates = "2026-11-27 09:00" if changes else "2026-11-26 10:00; 2026-11-27 09:00"
    assert found.date == dates


@pytest.mark.parametrize("key", ["processor family", "threads"])
def test_other_processors_and_threads_are_not_mixed(key: str) -> None:
    old, new = run(FIRST), run(FIRST)
    if key == "threads":
        new.roofline = dataclasses.replace(new.roofline, threads=1)
    else:
        new.machine[key] = "amd_avx512"
    with pytest.raises(ValueError, match=r"are of AVX2, 2 threads. Received: AVX2"):
        publish.merge(old, new)


def test_page_has_a_part_for_each_family(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    file = tmp_path / "run.json"
    file.write_text(run(FIRST).as_json())
    publish.publish([file], tmp_path)
    assert os.listdir(tmp_path / "results") == ["avx2.json"]
    page = (tmp_path / "table.md").read_text()
    assert re.findall("^#+ .*", page, re.MULTILINE) == [
        *("# Benchmark of tf_lstm_ops", "## AVX2", "### Inference")
    ]
    assert "\nNot measured yet: AMD with AVX-512; Intel with AVX-512.\n" in page


def test_a_part_has_its_own_results_and_heading(tmp_path: Path) -> None:
    """Its runs are not joined with the other results of the family."""
    (tmp_path / "results").mkdir()
    file = tmp_path / "run.json"
    for part, row in (("", FIRST), ("sessions, 2 threads", SECOND)):
        file.write_text(run(row).as_json())
        publish.publish([file], tmp_path, part)
    names = sorted(os.listdir(tmp_path / "results"))
    assert names == ["avx2.json", "avx2_sessions_2_threads.json"]
    page = (tmp_path / "table.md").read_text()
    assert re.findall("^## .*", page, re.MULTILINE) == ["## AVX2", "## AVX2, sessions, 2 threads"]


def test_page_is_that_of_the_results(tmp_path: Path) -> None:
    """If not: python benchmarks/publish.py writes it."""
    (tmp_path / "results").symlink_to(ROOT / "benchmarks" / "results")
    publish.publish([], tmp_path)
    committed = (ROOT / "benchmarks" / "table.md").read_text(encoding="utf-8")
    assert (tmp_path / "table.md").read_text() == committed


def test_published_results_say_what_was_measured() -> None:
    for file in (ROOT / "benchmarks" / "results").iterdir():
        found = json.loads(file.read_text())
        part = re.sub("[^a-z0-9]+", "_", found["machine"].get("part", ""))
        assert "_".join(filter(None, (found["machine"]["family"], part))) == file.stem
        for row in found["rows"]:
            # Seven digits of a commit, with all files as they are in it.
            assert all(re.fullmatch("[0-9a-f]{7}", c) for c in row["commit"].split("; "))
            assert re.match(r"\d{4}-\d\d-\d\d", row["date"])


@pytest.mark.parametrize(
    ("instruction_set", "vendor", "expected"),
    [
        ("x86-64-v4-bf16", "AuthenticAMD", "amd_avx512"),
        ("x86-64-v4", "GenuineIntel", "intel_avx512"),
        ("x86-64-v3", "AuthenticAMD", "avx2"),
        ("armv8-bf16", "", "armv8-bf16"),
    ],
)
def test_family(instruction_set: str, vendor: str, expected: str) -> None:
    assert machine.family(instruction_set, vendor) == expected


def test_heading_of_fewer_instructions_names_the_processor() -> None:
    found = machine.heading({"family": "avx2", "processor family": "amd_avx512"})
    assert found == "AVX2 instructions on AMD with AVX-512"


def test_machine_has_family_commit_and_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    found = machine.describe(Capacity(2, 1.957))
    assert re.fullmatch(r"[0-9a-f]{7}(\+changes)?|unknown", found["commit"])
    assert "ONEDNN_MAX_CPU_ISA=AVX2" in found["limits"]
    assert found["family"]
