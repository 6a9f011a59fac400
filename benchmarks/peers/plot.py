"""bench.png: the ratios of each row as dots."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from peers.frameworks import PEERS
from peers.report import GROUPS, Report, RowResult

# The colours of Okabe and Ito, which are distinct for the colour-blind, too.
_COLOURS = (
    *("#E69F00", "#56B4E9", "#009E73", "#CC79A7"),
    *("#0072B2", "#D55E00", "#F0E442", "#000000"),
)
_OUR_MARKERS = ("o", "s", "D", "^", "v", "P", "X")
_ROW_INCHES = 0.27
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)


def save(path: Path, report: Report) -> None:
    """Writes a PNG: a panel for each table, a line for each row, a dot for each peer.

    Args:
      path: the file to write. It is not written if there is nothing to draw.
      report: the results.
    """
    drawn = [r for r in report.results if any(m.ratios for m in r.found.values())]
    panels = [[r for r in drawn if r.row.group == g] for g in GROUPS]
    panels = [panel for panel in panels if panel]
    if not panels:
        return
    heights = [len(panel) + 1 for panel in panels]
    figure = Figure(figsize=(10.5, 1.8 + _ROW_INCHES * sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)  # needs no display, whatever backend the user has set
    axes = figure.subplots(len(panels), 1, sharex=True, height_ratios=heights, squeeze=False)
    for panel_axes, panel in zip(axes[:, 0], panels, strict=True):
        _draw(panel_axes, panel)
    day = report.machine["date"].partition(" ")[0]
    axes[-1, 0].set_xlabel(
        "time divided by ours (log scale): right of 1, ours is faster\n"
        f"{report.machine['processor']}, {day}"
    )
    handles = {}
    for panel_axes in axes[:, 0]:
        handles.update({h.get_label(): h for h in panel_axes.collections if h.get_label()})
    figure.legend(
        [handles[p.label] for p in PEERS.values() if p.label in handles],
        [p.label for p in PEERS.values() if p.label in handles],
        loc="outside upper center",
        ncols=5,
        frameon=False,
    )
    figure.savefig(path, dpi=130)


def _draw(axes: Axes, results: list[RowResult]) -> None:
    for name, peer in PEERS.items():
        points = [
            (statistics.median(r.found[name].ratios), y)
            for y, r in enumerate(results)
            if name != r.row.peers[0] and name in r.found and r.found[name].ratios
        ]
        if points:
            ratios, lines = zip(*points, strict=True)
            axes.scatter(
                ratios,
                lines,
                s=40,
                label=peer.label,
                edgecolor="#333333",
                linewidth=0.5,
                zorder=3,
                **_style(name),
            )
    axes.axvline(1, color="black", linewidth=1.2, zorder=2)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(_TICKS))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_yticks(range(len(results)), [r.row.name for r in results], fontsize=9)
    axes.set_ylim(len(results) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _style(name: str) -> dict[str, Any]:
    """Our peers are grey with different markers; the others differ in colour."""
    alike = [key for key, peer in PEERS.items() if peer.ours == PEERS[name].ours]
    index = alike.index(name)
    if PEERS[name].ours:
        return {"color": "#999999", "marker": _OUR_MARKERS[index % len(_OUR_MARKERS)]}
    return {"color": _COLOURS[index % len(_COLOURS)], "marker": "o"}
