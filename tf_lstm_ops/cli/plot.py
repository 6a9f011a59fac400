"""demo.png: learning curves and confusion matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from tf_lstm_ops.cli.training import Training

OURS: dict[str, Any] = {"color": "#1f5fa8", "linewidth": 2.2, "label": "tf_lstm_ops.keras.LSTM"}
STOCK: dict[str, Any] = {
    "color": "#e08214",
    "linewidth": 1.4,
    "linestyle": "--",
    "label": "keras.layers.LSTM",
}


def save(path: Path, ours: Training, stock: Training, confusion: npt.NDArray[np.int64]) -> None:
    """Writes a PNG: training loss and test accuracy by epoch, and the confusion matrix.

    Args:
      path: the file to write.
      ours, stock: the two trainings, of the same number of epochs.
      confusion: [9, 9], see training.confusion_matrix.
    """
    figure = Figure(figsize=(12, 5.6), layout="constrained")
    FigureCanvasAgg(figure)  # needs no display, whatever backend the user has set
    panels: dict[str, Axes] = figure.subplot_mosaic(
        [["loss", "confusion"], ["accuracy", "confusion"]], width_ratios=(1.05, 1)
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
    _draw_confusion(panels["confusion"], confusion)
    figure.savefig(path, dpi=130)


def _draw_curves(axes: Axes, ours: list[float], stock: list[float]) -> None:
    epochs = np.arange(1, len(ours) + 1)
    axes.plot(epochs, ours, **OURS)
    axes.plot(epochs, stock, **STOCK)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)


def _draw_confusion(axes: Axes, counts: npt.NDArray[np.int64]) -> None:
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(share, cmap="Blues", vmin=0, vmax=1)
    for row, column in np.argwhere(counts):
        colour = "white" if share[row, column] > 0.5 else "black"
        axes.text(column, row, str(counts[row, column]), ha="center", va="center", color=colour)
    speakers = range(len(counts))
    names = [str(speaker + 1) for speaker in speakers]
    axes.set_xticks(speakers, names)
    axes.set_yticks(speakers, names)
    axes.tick_params(length=0)
    correct = counts.trace() / counts.sum()
    axes.set(
        xlabel="predicted speaker",
        ylabel="actual speaker",
        title=f"{counts.trace()} of {counts.sum()} test utterances recognised ({correct:.1%})",
    )
