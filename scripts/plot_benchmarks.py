"""Draws benchmarks/speed-light.svg and speed-dark.svg: what people run, against stock Keras.

    python scripts/plot_benchmarks.py

The numbers are those of AMD with AVX-512 in benchmarks/results. They are in the metadata of the
SVGs, too. The script prints the text that pages give as the image's description. The same results
and the same version of matplotlib give the same bytes.
"""

import json
import statistics
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import svg

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
RESULTS = BENCHMARKS / "results" / "amd_avx512.json"
# Labels, and the first recurrent layer of the example, as the results name it after the kind.
EXAMPLES = {
    "text classification": "text classification, layer 1, bidirectional N64 H64 T850 I64",
    "IMDB sentiment": "IMDB, bidirectional N32 H64 T200 I128",
    "time series forecast": "time series, N32 H32 T24 I19",
    "translation": "GRU translation, encoder, bidirectional N64 H256 T20 I256",
    "speech recognition": ("GRU speech recognition, layer 1, bidirectional N32 H512 T690 I1568"),
    "music generation": "music generation, N64 H128 T25 I3",
    "video classification": "GRU video classification, layer 1, N32 H16 T20 I2048",
    "addition": "addition, encoder, N32 H128 T7 I12",
    "traffic forecast": "traffic forecasting, N1664 H64 T12 I20",
    "text generation": "GRU text generation, N64 H1024 T100 I256",
    "weather forecast": "weather forecasting, N256 H32 T120 I7",
    "handwriting": "handwriting, layer 1, bidirectional N64 H128 T32 I64",
}
KINDS = {"fit": ("fit", "o"), "inference": ("inference", "s")}  # name and marker
# Colours of Okabe and Ito, which are distinct for the colour-blind; the markers differ too.
THEMES = {
    "light": {"fit": "#0072B2", "inference": "#E69F00", "text": "#1F2328", "muted": "#59636E"},
    "dark": {"fit": "#56B4E9", "inference": "#E69F00", "text": "#F0F6FC", "muted": "#9198A1"},
}
TICKS = (1, 1.5, 2, 3, 4, 5)
ENDS = (0.8, 5.2)  # of the axis
# Pixels. A phone of 390 pixels shows the plot without making it smaller.
WIDTH, LEFT, RIGHT, ROW, TOP, BOTTOM = 360, 142, 6, 22, 86, 26
APART = 0.2  # in rows: equal ratios are two dots
SETTINGS = {**svg.SETTINGS, "lines.markersize": 6}
Ratios = dict[str, dict[str, float]]  # by label and kind


def ratios() -> Ratios:
    """The medians of Keras' times divided by ours, in the order of those of fit."""
    rows = {row["name"]: row for row in json.loads(RESULTS.read_text(encoding="utf-8"))["rows"]}
    found = {
        label: {
            kind: statistics.median(rows[f"{kind} {name}"]["peers"]["keras"]["ratios"])
            for kind in KINDS
        }
        for label, name in EXAMPLES.items()
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]["fit"]))


def note() -> str:
    """The machine and the day of the run."""
    machine = json.loads(RESULTS.read_text(encoding="utf-8"))["machine"]
    return f"{machine['processor']}, {machine['date'].partition(' ')[0]}"


def metadata(found: Ratios) -> dict[str, str | None]:
    """For the SVG: no date, and the numbers."""
    rows = (
        f"{row}: fit {x['fit']:.2f}, inference {x['inference']:.2f}" for row, x in found.items()
    )
    return {"Date": None, "Description": "; ".join(rows)}


def description(found: Ratios) -> str:
    """The text that stands for the image: the range of each kind."""
    ranges = []
    for kind, (name, _) in KINDS.items():
        values = [row[kind] for row in found.values()]
        ranges.append(f"{min(values):.2f} to {max(values):.2f} in {name}")
    what = f"A dot plot of layers of {len(found)} Keras examples"
    return f"{what}: the time of stock Keras divided by ours, {' and '.join(ranges)}."


def empty_axes(rows: int, theme: dict[str, str]) -> Axes:
    """The axes of a new figure, without anything outside of them."""
    height = TOP + ROW * rows + BOTTOM
    span = WIDTH - LEFT - RIGHT
    figure = Figure(figsize=(WIDTH / 96, height / 96), dpi=96)
    box = (LEFT / WIDTH, BOTTOM / height, span / WIDTH, ROW * rows / height)
    axes = figure.add_axes(box, xscale="log", xlim=ENDS, ylim=(rows - 0.5, -0.5), frame_on=False)
    axes.set(yticks=range(rows), xticks=TICKS, xticklabels=TICKS)
    axes.set_xticks([], minor=True)
    axes.tick_params(length=0, pad=3, labelcolor=theme["muted"], labelbottom=False, labeltop=True)
    axes.tick_params(axis="y", labelleft=False)
    axes.grid(color=theme["muted"], alpha=0.25, linewidth=0.6)
    axes.axvline(1, color=theme["text"], linewidth=1.3)
    return axes


def write(figure: Figure, x: float, y: float, words: str, colour: str) -> None:
    """Writes words that begin at the pixel x; y is that of their middle, from the top."""
    height = figure.get_figheight() * 96
    figure.text(x / WIDTH, 1 - y / height, words, color=colour, va="center_baseline")


def draw_head(axes: Axes, theme: dict[str, str]) -> None:
    """The title, the legend, the direction of the axis, and at the bottom the machine."""
    figure = axes.figure
    height = figure.get_figheight() * 96
    write(figure, 4, 12, "One layer: the time of stock Keras divided by ours", theme["text"])
    for x, (kind, (name, marker)) in zip((12, 74), KINDS.items(), strict=True):
        dot = mpl.lines.Line2D([x / WIDTH], [1 - 36 / height], color=theme[kind], marker=marker)
        figure.add_artist(dot)
        write(figure, x + 10, 36, name, theme["text"])
    write(figure, LEFT + 22, 54, "right of 1: ours is faster", theme["muted"])
    write(figure, 4, height - 10, note(), theme["muted"])


@mpl.rc_context(SETTINGS)
def draw(found: Ratios, theme: dict[str, str]) -> Figure:
    """A figure with a line for each row and a dot for each kind."""
    axes = empty_axes(len(found), theme)
    draw_head(axes, theme)
    for y, label in enumerate(found):
        write(axes.figure, 4, TOP + ROW * (y + 0.5), label, theme["text"])
    for offset, (kind, (_, marker)) in zip((-APART, APART), KINDS.items(), strict=True):
        lines = [y + offset for y in range(len(found))]
        axes.plot([row[kind] for row in found.values()], lines, marker, color=theme[kind])
    return axes.figure


@mpl.rc_context(SETTINGS)
def save(found: Ratios, theme: dict[str, str], path: Path) -> None:
    """Writes the SVG."""
    svg.save(draw(found, theme), metadata(found), path)


def main() -> None:
    found = ratios()
    print(description(found))
    for name, theme in THEMES.items():
        save(found, theme, BENCHMARKS / f"speed-{name}.svg")


if __name__ == "__main__":
    main()
