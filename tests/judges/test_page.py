"""The page of conformance has the numbers of sessions that scripts/conformance.py counts."""

import runpy
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("onnx", reason="makes the models")

from judges import nodes
from judges.cases import REFUSED, RIGHT, WRONG, ours

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "conformance.md"
script = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "conformance.py")))
SUITES = script.SUITES
OF_TORCH = {title for title in SUITES if "exported" in title or "dynamo" in title}


def assert_row(start: str) -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(start)]
    assert rows, f"{start}: run python scripts/conformance.py > docs/reference/conformance.md"


@pytest.mark.parametrize("title", sorted(SUITES.keys() - OF_TORCH))
def test_suite(title: str) -> None:
    assert_row(script.row(title, SUITES[title](), [ours])[0])


def test_sums_in_the_readme() -> None:
    """Of the column of sessions in the first table."""
    rows = PAGE.read_text("utf-8").partition("## Nodes")[0].splitlines()
    cells = [
        row.split("|") for row in rows if row.partition("|")[2].partition("|")[2][1:2].isdigit()
    ]
    counts = Counter({"cases": sum(int(row[2]) for row in cells)})
    for row in cells:
        for part in row[3].split(","):
            number, kind = part.split()
            counts[kind] += int(number)
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert f"Of {counts['cases']} [test cases of ONNX]" in readme
    words = f"{counts[RIGHT]} right, {counts[WRONG]} wrong, and refuses {counts[REFUSED]}"
    assert f"a session computes {words}" in readme


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "title",
    [
        pytest.param(title, marks=pytest.mark.slow if "=True" in title else pytest.mark.full)
        for title in sorted(OF_TORCH)
    ],
)
def test_suite_of_torch(title: str) -> None:
    pytest.importorskip("torch", reason="exports the models")
    assert_row(script.row(title, SUITES[title](), [ours])[0])


def test_options() -> None:
    for option in nodes.singles():
        title = script.TITLES.get(option, f"`{option}`")
        assert_row(script.row(title, script.of_option(option), [ours])[0])
