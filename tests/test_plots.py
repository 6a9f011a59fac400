"""The plots of the benchmark: they and their descriptions are those of the results."""

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import matplotlib
import pytest

from bench_table import ratios
from pages import ROOT

script = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "plot_benchmarks.py")))
FILE = script.most_complete()
RATIOS = {kind: script.ratios_of(FILE, kind) for kind in script.PLOTS}
SHOWN = {"README.md": ["training"], "docs/reference/benchmarks.md": [*script.PLOTS]}
MOST_BYTES = 80_000  # a page with all plots loads within a second on a slow line


@pytest.mark.parametrize("kind", script.PLOTS)
def test_ratios_are_those_of_the_table(kind: str) -> None:
    for peer in script.PLOTS[kind].peers:
        drawn = {name: round(row[peer], 2) for name, row in RATIOS[kind].items() if peer in row}
        label = script.PEERS[peer][0].removeprefix("stock ")
        assert drawn == pytest.approx(ratios(kind, label), abs=0.0051)


@pytest.mark.parametrize("page", SHOWN)
def test_pages_show_the_plots_and_describe_them(page: str) -> None:
    """If a description differs: python scripts/plot_benchmarks.py prints it."""
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    found = re.findall(r'srcset="([^"]+)"> <img src="([^"]+)" width="700" alt="([^"]+)"', text)
    for (dark, light, alt), kind in zip(found, SHOWN[page], strict=True):
        for image, theme in ((dark, "dark"), (light, "light")):
            file = ROOT / "benchmarks" / f"{kind}-{theme}.svg"
            assert (ROOT / page).parent.joinpath(image).resolve() == file
        assert alt == script.description(kind, RATIOS[kind])


@pytest.mark.parametrize("theme", script.THEMES)
@pytest.mark.parametrize("kind", script.PLOTS)
def test_plot_is_that_of_the_results(kind: str, theme: str, tmp_path: Path) -> None:
    """If not: python scripts/plot_benchmarks.py writes it. Bytes depend on matplotlib's version."""
    committed = (ROOT / "benchmarks" / f"{kind}-{theme}.svg").read_bytes()
    assert len(committed) < MOST_BYTES
    assert script.metadata(RATIOS[kind])["Description"].encode() in committed
    drawn = tmp_path / "plot.svg"
    script.draw(kind, RATIOS[kind], script.THEMES[theme], drawn)
    if f"Matplotlib v{matplotlib.__version__},".encode() in committed:
        assert drawn.read_bytes() == committed
