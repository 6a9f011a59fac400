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


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_somewhere(link: str) -> None:
    assert (ROOT / link).exists()
