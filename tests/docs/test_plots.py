"""The plot of the benchmark: it and its description are those of the results; all is readable."""

import itertools
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from pages import ROOT

from .bench_table import ratios

script = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "plot_benchmarks.py")))
RATIOS = script.ratios()
PAGES = ("README.md", "docs/reference/benchmarks.md")
PHONE = 390  # pixels
MOST_BYTES = 40_000


@pytest.mark.parametrize("kind", script.KINDS)
def test_ratios_are_those_of_the_table(kind: str) -> None:
    table = ratios(kind, "Keras")
    found = {label: table[row] for label, row in script.EXAMPLES.items()}
    # Both have two decimals.
    assert {label: round(row[kind], 2) for label, row in RATIOS.items()} == pytest.approx(
        found, abs=0.0051
    )


def test_rows_are_the_first_layers_of_examples() -> None:
    """So that no layer is chosen for its ratio."""
    assert 10 <= len(script.EXAMPLES) <= 12
    for label, row in script.EXAMPLES.items():
        assert "LSTM" not in label
        assert not re.search(r"layers? [2-9]|decoder", row)


def parts(figure: Any) -> dict[str, Bbox]:
    """The boxes of all texts and dots, in pixels of the figure."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    boxes = {text.get_text(): text.get_window_extent(renderer) for text in texts}
    assert len(boxes) == len(texts)
    for line in figure.findobj(Line2D):
        if line.get_marker() not in ("None", "", None):
            half = line.get_markersize() / 72 * figure.dpi / 2
            for x, y in line.get_transform().transform(line.get_xydata()):
                boxes[f"dot at {x:.0f}, {y:.0f}"] = Bbox.from_extents(
                    x - half, y - half, x + half, y + half
                )
    return boxes


def test_nothing_lies_over_another() -> None:
    with matplotlib.rc_context(script.SETTINGS):
        boxes = parts(script.draw(RATIOS, script.THEMES["light"]))
    assert len(boxes) > 3 * len(script.EXAMPLES)
    over = [(a, b) for a, b in itertools.combinations(boxes, 2) if boxes[a].overlaps(boxes[b])]
    assert over == []


def test_a_phone_shows_it_in_full() -> None:
    """With letters of at least 11 pixels, at the width that the page of a phone has."""
    with matplotlib.rc_context(script.SETTINGS):
        figure = script.draw(RATIOS, script.THEMES["light"])
        assert figure.get_figwidth() * 96 <= PHONE - 30
        boxes = parts(figure)
    assert min(text.get_fontsize() for text in figure.findobj(Text)) / 72 * 96 >= 11
    box = Bbox.union(list(boxes.values()))
    assert figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1
    assert figure.bbox.y0 <= box.y0 and box.y1 <= figure.bbox.y1


@pytest.mark.parametrize("page", PAGES)
def test_page_shows_the_plot_and_describes_it(page: str) -> None:
    """If a description differs: python scripts/plot_benchmarks.py prints it."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    [(dark, light, alt)] = re.findall(
        r'srcset="([^"]+)"> <img src="([^"]+)" width="\d+" alt="([^"]+)"', text
    )
    for image, theme in ((dark, "dark"), (light, "light")):
        file = ROOT / "benchmarks" / f"speed-{theme}.svg"
        assert (ROOT / page).parent.joinpath(image).resolve() == file
    assert alt == script.description(RATIOS)


@pytest.mark.parametrize("theme", script.THEMES)
def test_plot_is_that_of_the_results(theme: str, tmp_path: Path) -> None:
    """If not: python scripts/plot_benchmarks.py writes it. Bytes depend on matplotlib's version."""
    committed = (ROOT / "benchmarks" / f"speed-{theme}.svg").read_bytes()
    assert len(committed) < MOST_BYTES
    assert script.metadata(RATIOS)["Description"].encode() in committed
    drawn = tmp_path / "plot.svg"
    script.save(RATIOS, script.THEMES[theme], drawn)
    if f"Matplotlib v{matplotlib.__version__},".encode() in committed:
        assert drawn.read_bytes() == committed
