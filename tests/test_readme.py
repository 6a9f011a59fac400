"""README.md: its example runs, it is short, and its plot and numbers are those of the results."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import pytest

from pages import ROOT, run_examples

README = (ROOT / "README.md").read_text(encoding="utf-8")
PROSE = " ".join(re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL).split())
TABLE = (ROOT / "benchmarks" / "table.md").read_text(encoding="utf-8")

plot_readme = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "plot_readme.py")))
RATIOS = plot_readme.ratios_of(plot_readme.most_complete())


def test_example_prints_what_it_says(tmp_path: Path) -> None:
    run_examples(README, tmp_path)


def test_fits_two_screens() -> None:
    lines = README.splitlines()
    assert len(lines) <= 80
    assert max(map(len, lines)) <= 100


def ratios(kind: str, peer: str) -> dict[str, float]:
    """The medians of the peer's time divided by ours, by row of benchmarks/table.md."""
    found = {}
    column = None
    for line in TABLE.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if cells[1:] and cells[1] == "row":
            column = cells.index(peer) if peer in cells else None
        elif column and cells[1:] and cells[1].startswith(f"{kind} ") and cells[column] != "–":
            found[cells[1].removeprefix(f"{kind} ")] = float(cells[column].split()[0])
    return found


def range_of(kind: str, peer: str) -> str:
    found = ratios(kind, peer).values()
    return f"{min(found):.2f} to {max(found):.2f}"


def faster(kind: str, peer: str) -> str:
    found = ratios(kind, peer).values()
    return f"{sum(ratio < 1 for ratio in found)} of {len(found)} rows of {kind}"


def test_numbers_are_those_of_the_table() -> None:
    training, torch = range_of("training", "Keras"), range_of("training", "PyTorch")
    memory = [ratios("memory", peer)["of training N64 H1024 T25"] for peer in ("Keras", "PyTorch")]
    for words in (
        f"A dot plot of {len(ratios('training', 'Keras'))} rows",
        f"Stock Keras {training}, PyTorch {torch}.",
        f"Stock Keras took {training} times as long in training steps",
        f"{range_of('inference', 'Keras')} times in inference",
        f"{range_of('fit', 'Keras')} times in `fit`",
        f"PyTorch was faster than this package in {faster('training', 'PyTorch')}",
        f"ONNX Runtime in {faster('inference', 'ONNX Runtime')}",
        f"OpenVINO in {faster('inference', 'OpenVINO')}",
        f"N64 H1024 T25 took {memory[0]:.2f} times as much memory in stock Keras",
        f"{memory[1]:.2f} times as much in PyTorch",
    ):
        assert words in PROSE


def test_no_other_numbers() -> None:
    """Each ratio, with two decimals, stands in the table; versions are no ratios."""
    said = re.findall(r"\d+\.\d+", re.sub(r"Python [\d.]+ to [\d.]+|Apache-2.0", "", PROSE))
    assert len(said) > 10
    assert [n for n in said if not re.search(rf"(?<![\d.]){re.escape(n)}(?![\d.])", TABLE)] == []


def test_plot_has_the_ratios_of_the_table() -> None:
    for peer, label in (("keras", "Keras"), ("torch", "PyTorch")):
        drawn = {name: round(row[peer], 2) for name, row in RATIOS.items() if peer in row}
        assert drawn == pytest.approx(ratios("training", label), abs=0.0051)


def test_readme_shows_the_plots() -> None:
    assert re.findall(r"benchmarks/[\w-]+\.svg", README) == [
        "benchmarks/readme-dark.svg",
        "benchmarks/readme-light.svg",
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plot_is_that_of_the_results(theme: str, tmp_path: Path) -> None:
    """If not: python scripts/plot_readme.py writes it. Bytes depend on matplotlib's version."""
    committed = (ROOT / "benchmarks" / f"readme-{theme}.svg").read_bytes()
    assert plot_readme.metadata(RATIOS)["Description"].encode() in committed
    drawn = tmp_path / "plot.svg"
    plot_readme.draw(RATIOS, plot_readme.THEMES[theme], drawn)
    if f"Matplotlib v{matplotlib.__version__},".encode() in committed:
        assert drawn.read_bytes() == committed
