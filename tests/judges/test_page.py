"""The page of conformance has the numbers of sessions that scripts/conformance.py counts."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("onnx", reason="makes the models")

from judges import nodes
from judges.cases import ours

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
