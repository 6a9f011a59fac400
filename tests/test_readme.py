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


def ratios(kind: str) -> list[float]:
    """The medians of Keras' time divided by ours, in the rows of benchmarks/table.md."""
    found = []
    for line in (ROOT / "benchmarks" / "table.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if "Keras" in cells:
            column = cells.index("Keras")
        elif cells[1:] and cells[1].startswith(f"{kind} ") and cells[column] != "–":
            found.append(float(cells[column].split()[0]))
    return found


def test_speed_is_that_of_the_table() -> None:
    said = " ".join(README.split())
    for kind, words in (
        ("training", "stock layers took {} times as long in training steps"),
        ("inference", "{} times in inference"),
        ("fit", "{} times in `fit`"),
    ):
        found = ratios(kind)
        assert words.format(f"{min(found):.1f} to {max(found):.1f}") in said
