"""The plot of the latency of one step: the guide shows it and describes it."""

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
    assert alt == plot_latency.summary(plot_latency.curves(record))


def test_the_plot_has_the_numbers() -> None:
    record = json.loads((ROOT / "benchmarks" / "latency.json").read_text())
    words = plot_latency.description(plot_latency.curves(record))
    for theme in ("dark", "light"):
        assert words in (ROOT / f"benchmarks/latency-{theme}.svg").read_text(encoding="utf-8")


def row(name: str) -> dict[str, str]:
    """The medians of a row of the first table, in µs, by column."""
    table = (ROOT / "benchmarks" / "latency.md").read_text(encoding="utf-8")
    [head] = re.findall(r"## One step with one input\n\n(.*)\n", table)
    cells = re.findall(rf"\| {name} \|.*\n", table)[0]
    return dict(zip(head.split(" | "), cells[2:].split(" | "), strict=False))


def test_the_guide_has_the_times_of_sixteen_units() -> None:
    times = row("lstm I1 H16")
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"takes {times['Session']} µs in a `Session` and {times['C']} µs in C" in text


def test_the_guide_has_the_cost_of_a_function() -> None:
    """Up to 0.2 ms, for one unit with NumPy arrays. test_benchmark_page.py has the 0.1 ms."""
    costs = {f"{float(row(f'{kind} I1 H1')['tf.function']) / 1000:.1f}" for kind in ("lstm", "gru")}
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert {*re.findall(r"`tf.function` has a fixed cost of \[0.1 to ([\d.]+) ms\]", text)} == costs
