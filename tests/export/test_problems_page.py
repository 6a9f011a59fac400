"""docs/guide/export_problems.md: its messages stand in the code or in the tests that it names."""

import re
import runpy

import pytest

from pages import ROOT

docs_tables = runpy.run_path(str(ROOT / "scripts" / "docs_tables.py"))
ROWS = docs_tables["read"]()["export_problems"]["rows"]
# Parts of a long message stand in strings of their own; names and numbers are inserted.
JOINT = re.compile(r'"\s*\n\s*[rf]?"')


def plain(text: str) -> str:
    return re.sub(r"\\([.\[\]])", r"\1", JOINT.sub("", text)).replace('\\"', '"')


PACKAGE = "\n".join(
    plain(file.read_text(encoding="utf-8")) for file in sorted((ROOT / "tf_lstm_ops").rglob("*.py"))
)


@pytest.mark.parametrize(("message", "cause", "remedy"), ROWS, ids=[row[0][:40] for row in ROWS])
def test_message_is_raised(message: str, cause: list[str], remedy: list[str]) -> None:
    code = PACKAGE
    for test in (*cause[1:], *remedy[1:]):
        code += plain((ROOT / test.partition("::")[0]).read_text(encoding="utf-8"))
    [quoted, *_] = re.findall(r"`([^`]+)`", message)
    parts = [part for part in re.split("…", quoted) if len(part.strip()) > 2]
    assert parts and [part for part in parts if part.strip() not in code] == []
