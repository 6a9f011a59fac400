"""Draws the plot of README.md: training times of stock Keras and PyTorch divided by ours.

    python scripts/plot_readme.py [FILE]

FILE is a results.json of tf-lstm-ops bench; by default the most complete of benchmarks/results. It
writes benchmarks/readme-light.svg and readme-dark.svg, with the numbers in their metadata. The
same results and the same version of matplotlib give the same bytes.
"""

import argparse
import json
import math
import re
import statistics
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
PEERS = {"keras": ("stock Keras", "o"), "torch": ("PyTorch", "D")}
# Blue and orange of Okabe and Ito, which are distinct for the colour-blind; the markers differ too.
THEMES = {
    "light": {"keras": "#0072B2", "torch": "#E69F00", "text": "#1F2328", "muted": "#59636E"},
    "dark": {"keras": "#56B4E9", "torch": "#E69F00", "text": "#F0F6FC", "muted": "#9198A1"},
}
LEAST, MOST = 0.7, 8.0  # the axis; a ratio outside of it is a number at the edge
TICKS = (0.7, 1, 1.5, 2, 3, 4, 5, 6, 8)
WIDTH, LEFT, SIZES, SPAN, ROW, TOP, BOTTOM = 700, 304, 162, 378, 16, 62, 24  # pixels
SETTINGS = {"svg.hashsalt": "plot", "svg.fonttype": "none", "font.size": 8, "lines.markersize": 5}
SETTINGS["font.sans-serif"] = ["DejaVu Sans", "Verdana", "sans-serif"]
Ratios = dict[str, dict[str, float]]  # by row and peer


def ratios_of(file: Path) -> Ratios:
    """The medians of the peers' ratios, by training row and peer."""
    found: Ratios = {}
    for row in json.loads(file.read_text(encoding="utf-8"))["rows"]:
        if row["group"] == "training":
            values = {p: row["peers"][p]["ratios"] for p in PEERS if p in row["peers"]}
            name = row["name"].removeprefix("training ")
            found[name] = {p: statistics.median(v) for p, v in values.items() if v}
    return found


def most_complete() -> Path:
    """The results with the most training rows that have all peers."""
    files = sorted((BENCHMARKS / "results").glob("*.json"))
    return max(files, key=lambda f: [len(r) for r in ratios_of(f).values()].count(len(PEERS)))


def metadata(ratios: Ratios) -> dict[str, str | None]:
    """For the SVG: no date, and the numbers as table.md has them."""
    every = [(name, PEERS[p][0], x) for name, row in ratios.items() for p, x in row.items()]
    return {"Date": None, "Description": "; ".join(f"{n}: {p} {x:.2f}" for n, p, x in every)}


def labels(name: str) -> tuple[str, str]:
    """A short name of the task, and the sizes."""
    task, _, sizes = re.sub(r",? ?\b(?=N\d)", "|", name, count=1).partition("|")
    if "bidirectional" in task:
        task, sizes = re.sub(r"^bidirectional, |, bidirectional$", "", task), f"{sizes} D2"
    return re.sub(r", layer (?=\d)", " ", task) or "LSTM", sizes


@mpl.rc_context(SETTINGS)
def draw(ratios: Ratios, theme: dict[str, str], path: Path) -> None:
    """Writes an SVG with a line for each row, in the order of Keras' ratios."""
    text, muted = theme["text"], theme["muted"]
    rows = sorted(ratios.items(), key=lambda item: -item[1].get("keras", 0))
    height = TOP + ROW * len(rows) + BOTTOM
    figure = Figure(figsize=(WIDTH / 96, height / 96))
    box = (LEFT / WIDTH, BOTTOM / height, SPAN / WIDTH, ROW * len(rows) / height)
    axes = figure.add_axes(box, xscale="log", xlim=(LEAST, MOST), ylim=(len(rows) - 0.5, -0.5))
    axes.set(frame_on=False, yticks=range(len(rows)), xticks=TICKS, xticklabels=TICKS)
    axes.set_xticks([], minor=True)
    axes.tick_params(length=0, pad=3, labelcolor=muted, labeltop=True, labelleft=False)
    axes.grid(color=muted, alpha=0.25, linewidth=0.6)
    axes.axvline(1, color=text, linewidth=1.3)
    pixels = axes.get_yaxis_transform()  # with (x - LEFT) / SPAN

    def write(x: float, y: float, words: str, colour: str, side: str = "left") -> None:
        place = {"ha": side, "va": "center_baseline", "transform": pixels}
        axes.text((x - LEFT) / SPAN, y, words, color=colour, **place)

    write(4, -3.5, "Time of a training step divided by that of tf_lstm_ops", text)
    write(4, -1.2, "N batch, H units, T steps, I features, D directions", muted)
    for x, (peer, (label, marker)) in zip((500, 610), PEERS.items(), strict=True):
        dot = {"color": theme[peer], "clip_on": False, "transform": pixels}
        axes.plot((x - 10 - LEFT) / SPAN, -3.5, marker, **dot)
        write(x, -3.5, label, text)
    one = LEFT + SPAN * math.log(1 / LEAST) / math.log(MOST / LEAST)
    write(one - 6, -2.3, "← slower", muted, "right")
    write(one + 6, -2.3, "tf_lstm_ops is faster →", muted)
    for y, (name, row) in enumerate(rows):
        write(4, y, labels(name)[0], text)
        write(SIZES, y, labels(name)[1], muted)
        for peer, ratio in row.items():
            x = min(max(ratio, LEAST), MOST)
            marker = PEERS[peer][1] if x == ratio else ">" if x < ratio else "<"
            axes.plot(x, y, marker, color=theme[peer], clip_on=False)
            if x != ratio:
                write(LEFT + (SPAN - 8 if x < ratio else 36), y, f"{ratio:.2f}", text, "right")
    figure.savefig(path, transparent=True, metadata=metadata(ratios))
    path.write_text(re.sub(r" +$", "", path.read_text(), flags=re.MULTILINE))  # as pre-commit does


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", nargs="?", type=Path, default=most_complete())
    file = parser.parse_args().results
    ratios = ratios_of(file)
    for peer, (label, _) in PEERS.items():
        print(f"{file}: {label} in {sum(peer in r for r in ratios.values())} of {len(ratios)} rows")
    for name, theme in THEMES.items():
        draw(ratios, theme, BENCHMARKS / f"readme-{name}.svg")


if __name__ == "__main__":
    main()
