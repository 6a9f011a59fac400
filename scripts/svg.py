"""What the plots of scripts and benchmarks share: settings, colours, and how a file is written."""

import re
from pathlib import Path

from matplotlib.figure import Figure

# Colours of Okabe and Ito, which are distinct for the colour-blind; markers or lines differ too.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#999999", "#B8A800")
THEMES = {"light": ("#1F2328", "#59636E"), "dark": ("#F0F6FC", "#9198A1")}  # text, muted
SETTINGS = {"svg.hashsalt": "plot", "svg.fonttype": "none", "font.size": 9, "lines.markersize": 4}
SETTINGS["font.sans-serif"] = ["DejaVu Sans", "Verdana", "sans-serif"]


def save(figure: Figure, metadata: dict[str, str | None], path: Path) -> None:
    """Writes a figure, within SETTINGS."""
    figure.savefig(path, transparent=True, metadata=metadata)
    # Without the spaces at the ends of lines: smaller, and as pre-commit wants it.
    path.write_text(re.sub(r"^ +| +$", "", path.read_text(), flags=re.MULTILINE))
