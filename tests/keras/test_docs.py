"""The Python blocks of docs/keras.md run, from top to bottom, as they stand there."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "keras.md"


def python_blocks(text: str) -> list[str]:
    """Each block with as many empty lines before it as puts errors at the page's line numbers."""
    return [
        "\n" * text.count("\n", 0, match.start(1)) + match[1]
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]


def test_blocks_are_found():
    text = PAGE.read_text(encoding="utf-8")
    assert len(python_blocks(text)) == text.count("```python") >= 5
    (block,) = python_blocks("one\n```python\nx = 1\n```\n```text\nnot Python\n```\n")
    assert block == "\n\nx = 1\n"


@pytest.mark.full
def test_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # the page saves files
    names: dict[str, object] = {"__name__": "docs"}
    for block in python_blocks(PAGE.read_text(encoding="utf-8")):
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert "activation is relu, not tanh" in printed
    assert "reset_after is False, not True" in printed
    assert "peephole_kernel (3, 16)" in printed
