"""Draws benchmarks/loss_curves-light.svg and loss_curves-dark.svg; prints the table of the guide.

    python scripts/plot_loss_curves.py

The numbers are those of benchmarks/loss_curves.json, which benchmarks/loss_curves.py writes. Those
of the table are in the metadata of the SVGs, too. The same numbers and the same version of
matplotlib give the same bytes.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import svg

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
NAME = "loss_curves.json"
DTYPES = {"float32": "-", "mixed_bfloat16": "--", "bfloat16": ":"}  # and lines
# The rows of the table: task, curve, title and digits. Those with ticks are plots, too.
ROWS: tuple[tuple[str, str, str, str, tuple[float, ...]], ...] = (
    ("demo", "loss", "demo, test loss", ".3f", (0.05, 0.1, 0.2, 0.5)),
    ("demo", "accuracy", "demo, test accuracy", ".1%", ()),
    ("adding", "loss", "adding problem, validation loss", ".6f", (0.0001, 0.001, 0.01, 0.1)),
)
WIDTH, HEIGHT = 360, 430  # pixels: a phone shows the plot without making it smaller
Runs = dict[str, dict[str, list[dict[str, list[float]]]]]  # by task, type, seed, curve and epoch


def band(runs: Runs, task: str, curve: str, dtype: str) -> np.ndarray[Any, Any]:
    """[3, epochs]: the smallest value, the median and the largest value of three seeds."""
    return np.sort([run[curve] for run in runs[task][dtype]], axis=0)


def table(runs: Runs) -> str:
    """The values of the last epoch in Markdown: the median of the seeds, and their range."""
    lines = [f"| Last epoch | {' | '.join(f'`{dtype}`' for dtype in DTYPES)} |", "|---" * 4 + "|"]
    for task, curve, title, digits, _ in ROWS:
        line = f"| {title}"
        for low, median, high in (band(runs, task, curve, dtype)[:, -1] for dtype in DTYPES):
            line += f" | {median:{digits}} ({low:{digits}} to {high:{digits}})"
        lines.append(f"{line} |")
    return "\n".join(lines)


def metadata(runs: Runs) -> dict[str, str | None]:
    """For the SVG: no date, and the numbers."""
    return {"Date": None, "Description": table(runs).replace("`", "").replace("\n", " ")}


@mpl.rc_context(svg.SETTINGS)
def save(runs: Runs, theme: str, path: Path) -> None:
    """Writes the SVG: the median of the seeds as a line, their range as a band."""
    text, muted = svg.THEMES[theme]
    figure = Figure(figsize=(WIDTH / 96, HEIGHT / 96), dpi=96)
    for number, (task, curve, title, _, ticks) in enumerate(row for row in ROWS if row[-1]):
        box = (0.14, 0.61 - 0.46 * number, 0.83, 0.33)
        axes = figure.add_axes(box, yscale="log", frame_on=False)
        axes.set_title(title, color=text, size=9, loc="left")
        axes.set_yticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        axes.set_yticks([], minor=True)
        axes.tick_params(length=0, labelcolor=muted)
        axes.grid(color=muted, alpha=0.25, linewidth=0.6)
        for (dtype, line), colour in zip(DTYPES.items(), svg.COLOURS, strict=False):
            low, median, high = band(runs, task, curve, dtype)
            epochs = range(1, len(median) + 1)
            axes.fill_between(epochs, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(epochs, median, color=colour, linestyle=line, linewidth=1.5, label=dtype)
    axes.set_xlabel("epoch", color=muted, labelpad=2)
    figure.legend(
        *axes.get_legend_handles_labels(),
        **{"ncols": 3, "loc": "lower center", "frameon": False, "labelcolor": text},
    )
    svg.save(figure, metadata(runs), path)


def main(folder: Path = FOLDER) -> None:
    runs = json.loads((folder / NAME).read_text(encoding="utf-8"))["runs"]
    print(table(runs))
    for theme in svg.THEMES:
        save(runs, theme, folder / f"loss_curves-{theme}.svg")


if __name__ == "__main__":
    main()
