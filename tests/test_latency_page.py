"""The plot of the time of one row: the guide shows it and describes it."""

import json
import re

import plot_latency
from pages import ROOT

PAGE = ROOT / "docs" / "guide" / "serve_one_step.md"


def test_the_guide_describes_the_plot() -> None:
    """If not: python scripts/plot_latency.py prints the description."""
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    [(dark, light, alt)] = re.findall(
        r'srcset="([^"]+)"> <img src="([^"]+)" width="360" alt="([^"]+)"', text
    )
    assert (PAGE.parent / dark).is_file() and (PAGE.parent / light).is_file()
    record = json.loads((ROOT / "benchmarks" / "latency.json").read_text())
    assert alt == plot_latency.description(plot_latency.curves(record))


def test_the_plot_has_the_numbers() -> None:
    record = json.loads((ROOT / "benchmarks" / "latency.json").read_text())
    words = plot_latency.description(plot_latency.curves(record))
    for theme in ("dark", "light"):
        assert words in (ROOT / f"benchmarks/latency-{theme}.svg").read_text(encoding="utf-8")
