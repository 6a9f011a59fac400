"""docs/design/threads.md: its rates are those of the code, its figures those of the benchmark."""

import itertools
import re
import runpy
from types import SimpleNamespace

import pytest

from pages import ROOT

NOTE = (ROOT / "docs" / "design" / "threads.md").read_text(encoding="utf-8")
OUTPUT = (ROOT / "benchmarks" / "threads.md").read_text(encoding="utf-8")
script = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "plot_threads.py")))


def rows(text: str, first: str) -> dict[str, list[str]]:
    """The rows of tables by their first cell, which begins with an expression."""
    found = re.findall(rf"^\| ({first}[^|]*) \|(.*)\|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in found}


def test_rates_are_those_of_the_code() -> None:
    code = (ROOT / "cc" / "backends" / "cpu" / "plan" / "cost.h").read_text(encoding="utf-8")
    defaults = dict(re.findall(r"^  double (\w+) = ([0-9.]+);", code, re.MULTILINE))
    table = {name.split("`")[1]: cells for name, cells in rows(NOTE, "`").items()}
    assert {name: cells[0] for name, cells in table.items()} == defaults
    measured = {name: cells[0] for name, cells in rows(OUTPUT, "[a-z_]+").items() if name in table}
    # The note has two digits or three.
    assert {name: float(cells[1]) for name, cells in table.items() if cells[1]} == {
        name: pytest.approx(float(rate), rel=0.01) for name, rate in measured.items()
    }


def test_extreme_ratios_are_those_of_the_output() -> None:
    measured = OUTPUT.partition("Predicted inference")[0]
    output = {name.removeprefix("lstm "): cells for name, cells in rows(measured, "lstm").items()}
    assert len(output) == 8
    noted = rows(NOTE, "(?:inference|kept weights|backward)")
    assert list(noted) == ["inference", "kept weights", "backward"]
    # A row of the output: the regime, then the time, the predicted time and the ratio of each pass.
    for column, found in zip((3, 6, 9), noted.values(), strict=True):
        shapes = sorted(output, key=lambda shape: float(output[shape][column]))
        assert found == [f"{output[shape][column]} ({shape})" for shape in (shapes[0], shapes[-1])]
    for cells in output.values():
        for time, predicted, ratio in zip(cells[1::3], cells[2::3], cells[3::3], strict=True):
            # Times have one decimal, ratios two.
            assert float(predicted) / float(time) == pytest.approx(float(ratio), abs=0.006)
            # The rates of caches differ from run to run by a third.
            assert abs(float(ratio) - 1) <= 0.35


@pytest.mark.parametrize("kind", script.PASSES)
def test_no_shape_gets_slower_with_more_threads(kind: str) -> None:
    curves = script.curves(kind)
    assert len(curves) == 8
    for times in curves.values():
        assert list(times) == [1, 2, 4, 8, 16, 22, 32, 64, 128, 192]
        assert all(more <= fewer for fewer, more in itertools.pairwise(times.values()))


@pytest.mark.parametrize("theme", script.THEMES)
def test_plots_have_the_numbers(theme: str) -> None:
    svg = (script.FOLDER / f"threads-{theme}.svg").read_text(encoding="utf-8")
    assert script.metadata()["Description"] in svg
    assert f"threads-{theme}.svg" in NOTE
