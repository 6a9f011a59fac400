"""The Python blocks of docs/cudnn_rnn.md run, from top to bottom, as they stand there."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "cudnn_rnn.md"


def test_page_runs(capsys):
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == text.count("```python") == 3
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {"__name__": "docs"})
    printed = capsys.readouterr().out
    assert "(7, 4, 10) (1080,)" in printed
    assert "[(5, 3), (5, 3), (5, 3), (5, 3), (5, 5), (5, 5), (5, 5), (5, 5)]" in printed
