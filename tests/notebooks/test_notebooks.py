"""The notebooks of examples/notebooks: they are stored with outputs, and every cell runs.

Each fact that a notebook states is an assertion in one of its cells.
"""

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from pages import ROOT, links

FOLDER = ROOT / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 150_000  # bytes; git keeps every version
LIMIT = 600  # seconds of a cell; a whole notebook takes less than 40 on two idle cores

of_each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    """The cells of a kind, "code" or "markdown"."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def outputs(path: Path) -> list[dict[str, Any]]:
    return [output for cell in cells(path, "code") for output in cell["outputs"]]


def test_readme_names_every_notebook() -> None:
    named = links((ROOT / "examples" / "README.md").read_text(encoding="utf-8"))
    assert [f"notebooks/{path.name}" for path in NOTEBOOKS] == sorted(
        link for link in named if link.endswith(".ipynb")
    )


@of_each
def test_stored_as_run_from_top_to_bottom(path: Path) -> None:
    counts = [cell["execution_count"] for cell in cells(path, "code")]
    assert counts == list(range(1, len(counts) + 1))
    assert not [output for output in outputs(path) if output["output_type"] == "error"]
    assert path.stat().st_size <= LARGEST


@of_each
def test_has_plots(path: Path) -> None:
    plots = [output["data"] for output in outputs(path) if "data" in output]
    images = [base64.b64decode(plot["image/png"]) for plot in plots if "image/png" in plot]
    assert len(images) >= 2
    assert all(image.startswith(b"\x89PNG") for image in images)


@of_each
def test_links_lead_somewhere(path: Path) -> None:
    for cell in cells(path, "markdown"):
        for link in links("".join(cell["source"])):
            assert (FOLDER / link.partition("#")[0]).exists(), link


@pytest.mark.notebooks
@of_each
def test_every_cell_runs(path: Path, tmp_path: Path) -> None:
    """In a copy, so that nothing is written into the clone."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(shutil.copy(path, tmp_path), as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=LIMIT, resources=resources).execute()
