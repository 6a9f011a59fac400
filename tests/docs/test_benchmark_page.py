"""docs/reference/benchmarks.md: outliers and faster peers are those of the table of results."""

import re
from statistics import median

import pytest

from pages import ROOT
from peers.case_sets import CASES

from .bench_table import (
    TABLE,
    against_a_session,
    column,
    fallen_rows,
    faster,
    median_of,
    ratios,
    session_results,
    span,
)

PAGE = (ROOT / "docs" / "reference" / "benchmarks.md").read_text(encoding="utf-8")
SECTION = " ".join(PAGE.partition("\n## Outliers\n")[2].partition("\n## ")[0].split())
OURS = {row: float(cell.split()[0]) for row, cell in column("inference", "ours").items()}
SHORT = {row for row, milliseconds in OURS.items() if milliseconds < 1}


def test_page_says_what_was_measured() -> None:
    commit, date = (re.search(rf"^\* {k}: (\S+)", TABLE, re.M)[1] for k in ("commit", "date"))
    assert f"an AMD EPYC with AVX-512 on {date}, commit {commit}" in " ".join(PAGE.split())


def test_page_names_the_rows_in_which_a_peer_falls_over() -> None:
    assert f"[outliers](#outliers) in training: {fallen_rows()}" in " ".join(PAGE.split())


def test_the_memory_of_the_first_step() -> None:
    growth = "training", "Keras, memory"
    words = f"adds {median_of(*growth)} times as much to the peak memory as ours"
    assert words in " ".join(PAGE.split())
    assert f"median; range {span(*growth)})" in PAGE


@pytest.mark.parametrize("peer", ["PyTorch", "ONNX Runtime", "OpenVINO", "JAX"])
def test_who_is_faster_in_inference(peer: str) -> None:
    found = ratios("inference", peer)
    short = sum(ratio < 1 for row, ratio in found.items() if row in SHORT)
    lowest = min(found.values()), min(r for row, r in found.items() if row not in SHORT)
    counts = f"{faster('inference', peer)} | {short} of {len(SHORT & set(found))}"
    assert f"| {peer} | {counts} | {lowest[0]:.2f} | {lowest[1]:.2f} |" in SECTION


def test_the_cost_of_a_function() -> None:
    """0.1 ms: our time in short rows, without the part that the op alone takes."""
    op = ratios("inference", "ours, eager op")
    costs = [OURS[row] * (1 - op[row]) for row in SHORT]
    wanted = (
        f"It is {median(costs):.1f} ms, or 0.2 ms if the input and the output are [NumPy arrays]"
    )
    assert wanted in " ".join(SECTION.split())


@pytest.mark.parametrize(
    ("kind", "peer", "least"),
    [("training", "Keras", 10), ("inference", "Keras", 16), ("training", "PyTorch", 10)],
)
def test_outliers_are_named(kind: str, peer: str, least: float) -> None:
    """All rows with a larger ratio; the next ones are well below."""
    large = [ratio for ratio in ratios(kind, peer).values() if ratio > least]
    assert 1 <= len(large) <= 2
    assert [ratio for ratio in large if f"{ratio:.2f}" not in SECTION] == []


@pytest.mark.parametrize("group", ["inference", "models"])
@pytest.mark.parametrize("threads", [1, 2])
def test_sessions(threads: int, group: str) -> None:
    """Mean, range, and the number of rows in which the peer is faster."""
    peers = ("onnxruntime", "openvino", "ours")
    cells = " | ".join(against_a_session(threads, group, peer) for peer in peers)
    assert f"| {group} | {threads} | {cells} |" in PAGE


def test_page_says_which_run_the_sessions_are_of() -> None:
    for threads in (1, 2):
        machine = session_results(threads)["machine"]
        numbers = re.search(r"\(.*\)", machine["processor"])[0]
        for words in (numbers, machine["date"].split()[0], machine["commit"].split(";")[0]):
            assert words in PAGE


def test_page_says_which_rows_of_sessions_are_missing() -> None:
    """The sets tables and examples have these rows of inference."""
    rows = {r.name for name in ("tables", "examples") for r in CASES[name]}
    rows = {name for name in rows if name.startswith("inference ")}
    one, two = (rows - {r["name"] for r in session_results(n)["rows"]} for n in (1, 2))
    assert len(one) == 2 and all("speech recognition" in name for name in one)
    assert len(two) == 9 and two <= {row.name for row in CASES["tables"]}
    assert "with one thread, the two tasks of speech recognition" in " ".join(PAGE.split())
    assert "with two threads, nine tasks of the set `tables`" in " ".join(PAGE.split())
