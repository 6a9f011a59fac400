"""Draws docs/design/threads-light.svg and threads-dark.svg: predicted speed by number of threads.

    python scripts/plot_threads.py

The numbers are those of benchmarks/threads.md. They are in the metadata of the SVGs, too. The same
numbers and the same version of matplotlib give the same bytes.
"""

from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

import svg
from svg import COLOURS, SETTINGS, THEMES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "benchmarks" / "threads.md"
FOLDER = ROOT / "docs" / "design"
PASSES = ("inference", "backward pass")
MARKERS = "osD^vP*X"
WIDTH, HEIGHT = 360, 520  # pixels: a phone shows the plot without making it smaller
Curves = dict[str, dict[int, float]]  # microseconds by case and threads


def curves(kind: str) -> Curves:
    """The predicted times of a pass."""
    table = PAGE.read_text(encoding="utf-8").partition(f"Predicted {kind}, ")[2].split("\n\n")[1]
    head, _, *rows = ([cell.strip() for cell in row.split("|")[1:-1]] for row in table.splitlines())
    return {
        case.removeprefix("lstm "): {
            int(threads): float(cell.split(": ")[1])
            for threads, cell in zip(head[1:], cells, strict=True)
        }
        for case, *cells in rows
    }


def metadata() -> dict[str, str | None]:
    """For the SVG: no date, and the numbers."""
    rows = [
        f"{kind} {case}: {', '.join(f'{time:.1f}' for time in times.values())}"
        for kind in PASSES
        for case, times in curves(kind).items()
    ]
    return {"Date": None, "Description": "; ".join(rows)}


@mpl.rc_context(SETTINGS)
def draw(text: str, muted: str) -> Figure:
    """A figure with the curves of each pass, one below the other, and a legend."""
    figure = Figure(figsize=(WIDTH / 96, HEIGHT / 96), dpi=96)
    for row, kind in enumerate(PASSES):
        axes = figure.add_axes((0.1, 0.64 - 0.36 * row, 0.87, 0.28))
        axes.set(xscale="log", yscale="log", ylim=(0.8, 100))
        axes.set_title(f"{kind}: times as fast as one thread", color=text, size=9, loc="left")
        found = curves(kind)
        for times, colour, marker in zip(found.values(), COLOURS, MARKERS, strict=True):
            speeds = [times[1] / time for time in times.values()]
            axes.plot(list(times), speeds, color=colour, marker=marker, linewidth=1)
        ticks = [threads for threads in times if threads not in (22, 128)]  # labels would touch
        axes.set_xticks(ticks, labels=[str(threads) for threads in ticks])
        axes.set_yticks((1, 10, 100), labels=("1", "10", "100"))
        axes.set_xticks([], minor=True)
        axes.set_yticks([], minor=True)
        axes.tick_params(length=0, labelcolor=muted)
        axes.grid(color=muted, alpha=0.25, linewidth=0.6)
        axes.set_frame_on(False)
    axes.set_xlabel("requested threads", color=muted, labelpad=2)
    figure.legend(
        axes.lines, list(found), ncols=2, loc="lower left", frameon=False, labelcolor=text
    )
    return figure


@mpl.rc_context(SETTINGS)
def save(theme: str, path: Path) -> None:
    """Writes the SVG."""
    svg.save(draw(*THEMES[theme]), metadata(), path)


def main() -> None:
    for theme in THEMES:
        save(theme, FOLDER / f"threads-{theme}.svg")


if __name__ == "__main__":
    main()
