"""Runs the README's examples, and checks that it names files and commands that exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
EXAMPLES = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)


def test_examples_print_what_they_say(tmp_path: Path) -> None:
    """All blocks, top to bottom, in one process, as a reader would paste them."""
    expected = re.findall(r"^print\(.*\)  # (.*)$", "\n".join(EXAMPLES), flags=re.MULTILINE)
    assert len(expected) == len(EXAMPLES) == 4
    program = tmp_path / "readme.py"
    program.write_text("\n".join(EXAMPLES))
    result = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    # Keras' export prints lines of its own.
    assert [line for line in result.stdout.splitlines() if line in expected] == expected


TABLE = README.partition("each cell with a test that shows it:")[2].partition("\n## ")[0]
CELLS = [cell.strip() for row in TABLE.splitlines()[4:] for cell in row.split("|")[2:-1]]


def test_table_names_a_test_in_each_cell() -> None:
    """Or says "no"."""
    assert len(CELLS) == 4 * len(re.findall(r"^\| \w", TABLE, flags=re.MULTILINE))
    linked = [cell for cell in CELLS if cell != "no"]
    assert len(linked) > len(CELLS) / 2
    for cell in linked:
        found = re.fullmatch(r"\[[^]]+\]\((tests/.+\.py)#(test_\w+)\)", cell)
        assert found, cell
        file, test = found.groups()
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), flags=re.MULTILINE), cell


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()
