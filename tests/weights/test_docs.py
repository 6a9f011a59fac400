"""The Python blocks of docs/weights.md run, from top to bottom, and print what they say."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "weights.md"


def test_page_runs(capsys):
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == text.count("```python") >= 5
    names: dict[str, object] = {"__name__": "docs"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    for line in re.findall(r"^print\(.*\)  # (.*)$", "\n".join(blocks), re.MULTILINE):
        assert line in printed
    (message,) = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert message.strip() in printed
