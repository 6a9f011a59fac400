"""Draws benchmarks/latency-light.svg and latency-dark.svg: the time of one step by units.

    python scripts/plot_latency.py [FOLDER]

The numbers are those of FOLDER/latency.json, which benchmarks/latency.py writes. The default is
benchmarks. They are in the metadata of the SVGs, too. The same numbers and the same version of
matplotlib give the same bytes.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import svg

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
NAME = "latency.json"
UNITS = (8, 16, 32, 64, 128, 256, 512)
# By peer: label, number of the colour, marker and line. Ours have whole lines.
LINES = {
    "predict": ("model.predict", 6, "v", ":"),
    "function": ("tf.function", 4, "^", ":"),
    "op": ("eager op", 1, "D", ":"),
    "openvino": ("OpenVINO", 5, "P", "--"),
    "onnxruntime": ("ONNX Runtime", 3, "s", "--"),
    "litert": ("LiteRT", 7, "X", "--"),
    "session": ("Session", 0, "o", "-"),
    "c": ("C stream", 2, "o", "-"),
    "rtneural": ("RTNeural", 6, "*", "--"),
}
TICKS = (0.1, 1, 10, 100, 1000, 10000)
WIDTH, HEIGHT = 360, 430  # pixels: a phone shows the plot without making it smaller
LABEL_GAP = 0.25  # in powers of ten, between names of lines
Curves = dict[str, dict[int, float]]  # microseconds by peer and units


def curves(record: dict[str, Any]) -> Curves:
    """The medians of an LSTM with one input."""
    found: Curves = {name: {} for name in LINES}
    for units in UNITS:
        for name, times in record["results"].get(f"lstm I1 H{units}", {}).items():
            if name in found:
                found[name][units] = times["p50"]
        if times := record["rtneural"].get("lstm", {}).get(str(units)):
            found["rtneural"][units] = min(times.values()) / 1e3
    return {name: curve for name, curve in found.items() if curve}


def summary(found: Curves) -> str:
    """The plot in a few words: the times of 16 units."""
    times = (f"{LINES[name][0]} {float(f'{curve[16]:.2g}'):g}" for name, curve in found.items())
    return f"A log plot of one step by units. With 16 units it takes, in µs: {', '.join(times)}."


def description(found: Curves) -> str:
    """All numbers of the plot."""
    units = ", ".join(str(n) for n in UNITS)
    lines = []
    for name, curve in found.items():
        times = [f"{t:.0f}" if t >= 100 else f"{t:.3g}" for t in curve.values()]
        lines.append(f"{LINES[name][0]}: {', '.join(times)}")
    return (
        f"Microseconds of one step of an LSTM with one input and {units} units. {'; '.join(lines)}."
    )


def spread(places: list[float], gap: float) -> list[float]:
    """Ascending numbers moved apart, each as little as possible, until none are closer than gap."""
    moved = list(places)
    for _ in range(1000):
        for i in range(len(moved) - 1):
            missing = gap - (moved[i + 1] - moved[i])
            if missing > 0:
                moved[i] -= missing / 2
                moved[i + 1] += missing / 2
    return moved


def note(record: dict[str, Any]) -> str:
    """The machine and the day of a run."""
    machine = record["machine"]
    return f"{machine['processor']}, {machine['date'].partition(' ')[0]}"


@mpl.rc_context(svg.SETTINGS)
def save(found: Curves, theme: str, path: Path, below: str = "") -> None:
    """Writes the SVG, with a line of text below the plot."""
    text, muted = svg.THEMES[theme]
    figure = Figure(figsize=(WIDTH / 96, HEIGHT / 96), dpi=96)
    axes = figure.add_axes((0.14, 0.15, 0.56, 0.78), xscale="log", yscale="log", frame_on=False)
    axes.set_title("One step of an LSTM, µs", color=text, size=9, loc="left")
    for name, curve in found.items():
        _, colour, marker, line = LINES[name]
        axes.plot(
            list(curve),
            list(curve.values()),
            **{"color": svg.COLOURS[colour], "marker": marker, "linestyle": line},
            linewidth=1.5,
        )
    label_lines(axes, found)
    axes.set_yticks(TICKS, labels=[f"{tick:g}" for tick in TICKS])
    axes.set_xticks(UNITS, labels=[str(units) for units in UNITS])
    axes.minorticks_off()
    axes.tick_params(length=0, labelcolor=muted)
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(color=muted, alpha=0.25, linewidth=0.6)
    axes.set_xlabel("units", color=muted, labelpad=2)
    figure.text(0.01, 0.01, below, color=muted, size=7)
    svg.save(figure, {"Date": None, "Description": description(found)}, path)


def label_lines(axes: Axes, found: Curves) -> None:
    """Writes the name of each line beside its end, in its colour."""
    ends = sorted((list(curve.items())[-1][::-1], name) for name, curve in found.items())
    places = spread([math.log10(time) for (time, _), _ in ends], LABEL_GAP)
    for ((time, units), name), place in zip(ends, places, strict=True):
        label, colour, *_ = LINES[name]
        axes.annotate(
            label,
            (units, time),
            (1.07, 10**place),
            textcoords=axes.get_yaxis_transform(),
            **{"color": svg.COLOURS[colour], "va": "center"},
            arrowprops={"arrowstyle": "-", "color": svg.COLOURS[colour], "linewidth": 0.5},
        )


def main(folder: Path = FOLDER) -> None:
    record = json.loads((folder / NAME).read_text(encoding="utf-8"))
    found = curves(record)
    print(summary(found))
    for theme in svg.THEMES:
        save(found, theme, folder / f"latency-{theme}.svg", note(record))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
