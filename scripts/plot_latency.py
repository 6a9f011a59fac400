"""Draws benchmarks/latency-light.svg and latency-dark.svg: the time of one step by units.

    python scripts/plot_latency.py [FOLDER]

The numbers are those of FOLDER/latency.json, which benchmarks/latency.py writes. The default is
benchmarks. They are in the metadata of the SVGs, too. The same numbers and the same version of
matplotlib give the same bytes.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
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


def description(found: Curves) -> str:
    """The plot in words."""
    units = ", ".join(str(n) for n in UNITS)
    lines = []
    for name, curve in found.items():
        times = [f"{t:.0f}" if t >= 100 else f"{t:.3g}" for t in curve.values()]
        lines.append(f"{LINES[name][0]}: {', '.join(times)}")
    return (
        f"Microseconds of one step of an LSTM with one input and {units} units. {'; '.join(lines)}."
    )


@mpl.rc_context(svg.SETTINGS)
def save(found: Curves, theme: str, path: Path) -> None:
    """Writes the SVG."""
    text, muted = svg.THEMES[theme]
    figure = Figure(figsize=(WIDTH / 96, HEIGHT / 96), dpi=96)
    axes = figure.add_axes((0.14, 0.29, 0.83, 0.65), xscale="log", yscale="log", frame_on=False)
    axes.set_title("One step of an LSTM, µs", color=text, size=9, loc="left")
    for name, curve in found.items():
        label, colour, marker, line = LINES[name]
        axes.plot(
            list(curve),
            list(curve.values()),
            **{"color": svg.COLOURS[colour], "marker": marker, "linestyle": line},
            **{"linewidth": 1.5, "label": label},
        )
    axes.set_yticks(TICKS, labels=[f"{tick:g}" for tick in TICKS])
    axes.set_xticks(UNITS, labels=[str(units) for units in UNITS])
    axes.minorticks_off()
    axes.tick_params(length=0, labelcolor=muted)
    axes.grid(color=muted, alpha=0.25, linewidth=0.6)
    axes.set_xlabel("units", color=muted, labelpad=2)
    figure.legend(
        *axes.get_legend_handles_labels(),
        **{"ncols": 3, "loc": "lower center", "frameon": False, "labelcolor": text},
        **{"columnspacing": 0.6, "handlelength": 2.2, "handletextpad": 0.4},
    )
    svg.save(figure, {"Date": None, "Description": description(found)}, path)


def main(folder: Path = FOLDER) -> None:
    found = curves(json.loads((folder / NAME).read_text(encoding="utf-8")))
    print(description(found))
    for theme in svg.THEMES:
        save(found, theme, folder / f"latency-{theme}.svg")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
