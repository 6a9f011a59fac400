"""README.md: its example runs, and it is short."""

from pathlib import Path

from pages import ROOT, run_examples

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_example_prints_what_it_says(tmp_path: Path) -> None:
    run_examples(README, tmp_path)


def test_fits_two_screens() -> None:
    lines = README.splitlines()
    assert len(lines) <= 90
    assert max(map(len, lines)) <= 100
