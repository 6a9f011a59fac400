"""Draws the benchmark's results: times of the peers divided by ours.

    python scripts/plot_benchmarks.py [FILE] [--plots training inference fit]

FILE is a results.json of benchmarks/peers; by default the most complete of benchmarks/results. For
each plot it writes benchmarks/PLOT-light.svg and PLOT-dark.svg, with the numbers in their metadata,
and prints the text that the pages give as the image's description. The same results and the same
version of matplotlib give the same bytes.
"""

import argparse
import json
import math
import re
import statistics
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
PEERS = {  # by key of results.json: name and marker
    "keras": ("stock Keras", "o"),
    "torch": ("PyTorch", "D"),
    "onnxruntime": ("ONNX Runtime", "s"),
    "openvino": ("OpenVINO", "^"),
}
# Colours of Okabe and Ito, which are distinct for the colour-blind; the markers differ too.
BOTH = {"torch": "#E69F00", "onnxruntime": "#009E73", "openvino": "#CC79A7"}
THEMES = {
    "light": {"keras": "#0072B2", **BOTH, "text": "#1F2328", "muted": "#59636E"},
    "dark": {"keras": "#56B4E9", **BOTH, "text": "#F0F6FC", "muted": "#9198A1"},
}
WIDTH, LEFT, SIZES, SPAN, ROW, TOP, BOTTOM = 700, 304, 162, 378, 16, 62, 24  # pixels
LETTER, MARKER = 7.2, 24  # pixels of the legend: a letter, a marker with its margins
SETTINGS = {"svg.hashsalt": "plot", "svg.fonttype": "none", "font.size": 8, "lines.markersize": 5}
SETTINGS["font.sans-serif"] = ["DejaVu Sans", "Verdana", "sans-serif"]
Ratios = dict[str, dict[str, float]]  # by row and peer


class Plot(NamedTuple):
    """What a plot shows.

    Attributes:
      time: what is divided by our time.
      peers: the keys of the peers.
      ticks: of the axis, which ends at the outer ones; a ratio outside is a number at the edge.
    """

    time: str
    peers: tuple[str, ...]
    ticks: tuple[float, ...]


PLOTS = {  # by the first word of the names of the rows
    "training": Plot(
        "time of a training step", ("keras", "torch"), (0.7, 1, 1.5, 2, 3, 4, 5, 6, 8)
    ),
    "inference": Plot(
        "time of inference", tuple(PEERS), (0.25, 0.35, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7)
    ),
    "fit": Plot("time of a training step in model.fit", ("keras",), (0.7, 1, 1.5, 2, 3, 4)),
}


def ratios_of(file: Path, kind: str) -> Ratios:
    """The medians of the peers' ratios, by row and peer."""
    found: Ratios = {}
    for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
        if row["name"].startswith(f"{kind} "):
            peers = [p for p in PLOTS[kind].peers if p in row["peers"]]
            values = {p: row["peers"][p]["ratios"] for p in peers}
            name = row["name"].removeprefix(f"{kind} ")
            found[name] = {p: statistics.median(v) for p, v in values.items() if v}
    return found


def most_complete() -> Path:
    """The results with the most ratios."""
    files = sorted((BENCHMARKS / "results").glob("*.json"))
    return max(files, key=lambda f: sum(len(r) for k in PLOTS for r in ratios_of(f, k).values()))


def metadata(ratios: Ratios) -> dict[str, str | None]:
    """For the SVG: no date, and the numbers as table.md has them."""
    rows = (
        f"{name}: " + ", ".join(f"{PEERS[p][0]} {x:.2f}" for p, x in row.items())
        for name, row in ratios.items()
    )
    return {"Date": None, "Description": "; ".join(rows)}


def capitalized(words: str) -> str:
    """The words with a capital at the beginning only."""
    return words[0].upper() + words[1:]


def description(kind: str, ratios: Ratios) -> str:
    """The text that stands for the image: the range of each peer."""
    ranges = []
    for peer in PLOTS[kind].peers:
        found = [row[peer] for row in ratios.values() if peer in row]
        if found:
            ranges.append(f"{PEERS[peer][0]} {min(found):.2f} to {max(found):.2f}")
    what = f"{len(ratios)} rows: the {PLOTS[kind].time} divided by that of tf_lstm_ops"
    return f"A dot plot of {what}. {capitalized(', '.join(ranges))}."


def labels(name: str) -> tuple[str, str]:
    """A short name of the task, and the sizes."""
    task, _, sizes = re.sub(r",? ?\b(?=N\d)", "|", name, count=1).partition("|")
    if "bidirectional" in task:
        task, sizes = re.sub(r"^bidirectional, |, bidirectional$", "", task), f"{sizes} D2"
    return re.sub(r", layer (?=\d)", " ", task) or "LSTM", sizes


def legend(peers: tuple[str, ...]) -> list[int]:
    """Where the names of the peers begin, so that the last one ends at the right edge."""
    lengths = [round(LETTER * len(PEERS[peer][0])) + MARKER for peer in peers]
    return [WIDTH + MARKER - sum(lengths[i:]) for i in range(len(peers))]


def in_axes(axes: Axes) -> dict[str, Any]:
    """Options that place what is drawn at (x - LEFT) / SPAN, with x in pixels, and in a row."""
    return {"transform": axes.get_yaxis_transform()}


def write(axes: Axes, x: float, y: float, words: str, colour: str, side: str = "left") -> None:
    """Writes words that begin or end at the pixel x."""
    place = {"ha": side, "va": "center_baseline", **in_axes(axes)}
    axes.text((x - LEFT) / SPAN, y, words, color=colour, **place)


def empty_axes(rows: int, ticks: tuple[float, ...], theme: dict[str, str]) -> Axes:
    """The axes of a new figure."""
    height = TOP + ROW * rows + BOTTOM
    box = (LEFT / WIDTH, BOTTOM / height, SPAN / WIDTH, ROW * rows / height)
    ends = {"xlim": (ticks[0], ticks[-1]), "ylim": (rows - 0.5, -0.5)}
    figure = Figure(figsize=(WIDTH / 96, height / 96))
    axes = figure.add_axes(box, xscale="log", **ends)
    axes.set(frame_on=False, yticks=range(rows), xticks=ticks, xticklabels=ticks)
    axes.set_xticks([], minor=True)
    axes.tick_params(length=0, pad=3, labelcolor=theme["muted"], labeltop=True, labelleft=False)
    axes.grid(color=theme["muted"], alpha=0.25, linewidth=0.6)
    axes.axvline(1, color=theme["text"], linewidth=1.3)
    return axes


def draw_head(axes: Axes, plot: Plot, theme: dict[str, str]) -> None:
    """The title, the legend and the directions of the axis."""
    text, muted = theme["text"], theme["muted"]
    write(axes, 4, -3.5, f"{capitalized(plot.time)} divided by that of tf_lstm_ops", text)
    write(axes, 4, -1.2, "N batch, H units, T steps, I features, D directions", muted)
    for x, peer in zip(legend(plot.peers), plot.peers, strict=True):
        name, marker = PEERS[peer]
        dot = {"color": theme[peer], "clip_on": False, **in_axes(axes)}
        axes.plot((x - 10 - LEFT) / SPAN, -3.5, marker, **dot)
        write(axes, x, -3.5, name, text)
    least, most = plot.ticks[0], plot.ticks[-1]
    one = LEFT + SPAN * math.log(1 / least) / math.log(most / least)
    write(axes, one - 6, -2.3, "← slower", muted, "right")
    write(axes, one + 6, -2.3, "tf_lstm_ops is faster →", muted)


@mpl.rc_context(SETTINGS)
def draw(kind: str, ratios: Ratios, theme: dict[str, str], path: Path) -> None:
    """Writes an SVG with a line for each row, in the order of Keras' ratios."""
    plot = PLOTS[kind]
    least, most = plot.ticks[0], plot.ticks[-1]
    rows = sorted(ratios.items(), key=lambda item: -item[1].get("keras", 0))
    axes = empty_axes(len(rows), plot.ticks, theme)
    draw_head(axes, plot, theme)
    for y, (name, _) in enumerate(rows):
        for x, words, colour in zip((4, SIZES), labels(name), ("text", "muted"), strict=True):
            write(axes, x, y, words, theme[colour])
    for peer in plot.peers:
        dot = {"color": theme[peer], "clip_on": False}
        dots = [(row[peer], y) for y, (_, row) in enumerate(rows) if peer in row]
        within = [(x, y) for x, y in dots if least <= x <= most]
        axes.plot([x for x, _ in within], [y for _, y in within], PEERS[peer][1], **dot)
        for x, y in dots:
            if not least <= x <= most:
                axes.plot(min(max(x, least), most), y, "<" if x < least else ">", **dot)
                end = LEFT + (36 if x < least else SPAN - 8)
                write(axes, end, y, f"{x:.2f}", theme["text"], "right")
    axes.figure.savefig(path, transparent=True, metadata=metadata(ratios))
    # Without the spaces at the ends of lines: smaller, and as pre-commit wants it.
    path.write_text(re.sub(r"^ +| +$", "", path.read_text(), flags=re.MULTILINE))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", nargs="?", type=Path, default=most_complete())
    parser.add_argument("--plots", nargs="+", choices=PLOTS, default=[*PLOTS])
    arguments = parser.parse_args()
    for kind in arguments.plots:
        ratios = ratios_of(arguments.results, kind)
        if not any(ratios.values()):
            parser.error(f"{arguments.results} has no ratios of {kind}; see --plots")
        print(f"{arguments.results}, {kind}: {description(kind, ratios)}")
        for name, theme in THEMES.items():
            draw(kind, ratios, theme, BENCHMARKS / f"{kind}-{name}.svg")


if __name__ == "__main__":
    main()
