"""demo.png: learning curves and the time of an epoch."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from tf_lstm_ops import _files
from tf_lstm_ops.cli.training import Training

OURS: dict[str, Any] = {"color": "#1f5fa8", "linewidth": 2.2, "label": "tf_lstm_ops.keras.LSTM"}
STOCK: dict[str, Any] = {
    "color": "#e08214",
    "linewidth": 1.4,
    "linestyle": "--",
    "label": "keras.layers.LSTM",
}


def save(path: Path, ours: Training, stock: Training) -> None:
    """Writes a PNG: training loss and test accuracy by epoch, and the seconds per epoch.

    Args:
      path: the file to write.
      ours, stock: the two trainings, of the same number of epochs.
    """
    figure = Figure(figsize=(12, 5.6), layout="constrained")
    FigureCanvasAgg(figure)  # needs no display, whatever backend the user has set
    panels: dict[str, Axes] = figure.subplot_mosaic(
        [["loss", "seconds"], ["accuracy", "seconds"]], width_ratios=(1.6, 1)
    )
    loss, accuracy = panels["loss"], panels["accuracy"]
    _draw_curves(loss, [s.loss for s in ours.train], [s.loss for s in stock.train])
    loss.set(yscale="log", ylabel="training loss", title="Japanese Vowels: learning curves")
    loss.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    loss.yaxis.set_major_formatter("{x:g}")
    loss.yaxis.set_minor_formatter(NullFormatter())
    loss.tick_params(labelbottom=False)
    loss.legend(frameon=False)
    _draw_curves(accuracy, [s.accuracy for s in ours.test], [s.accuracy for s in stock.test])
    accuracy.set(xlabel="epoch", ylabel="test accuracy")
    accuracy.yaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]))
    accuracy.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    _draw_seconds(panels["seconds"], ours, stock)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    _files.write(str(path), content.getvalue())


def _draw_curves(axes: Axes, ours: list[float], stock: list[float]) -> None:
    epochs = np.arange(1, len(ours) + 1)
    axes.plot(epochs, ours, **OURS)
    axes.plot(epochs, stock, **STOCK)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_seconds(axes: Axes, ours: Training, stock: Training) -> None:
    mine, theirs = ours.seconds_per_epoch(), stock.seconds_per_epoch()
    names = [str(style["label"]).replace(".LSTM", "\n.LSTM") for style in (OURS, STOCK)]
    bars = axes.bar(names, [mine, theirs], color=[OURS["color"], STOCK["color"]], width=0.55)
    axes.bar_label(bars, fmt="{:.3f} s", padding=3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(axis="x", length=0)
    axes.margins(y=0.1)
    axes.set(
        ylabel="seconds per epoch (median)",
        title=f"Training: {theirs / mine:.2f} times as fast as stock",
    )
