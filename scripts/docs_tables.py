"""Writes the tables of the documentation that say what supports what.

    python scripts/docs_tables.py           # writes them into the pages
    python scripts/docs_tables.py --check   # fails where a page differs
    python scripts/docs_tables.py --run     # runs the tests that the tables name

docs/reference/tables.json has the tables. Each has the `page` that shows it, its `columns` and its
`rows`. The first cell of a row is its name. Every other cell is a list: the text, then the pytest
ids of the tests that show it. With `links` the text links to the first test.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "reference" / "tables.json"
# Tests with other marks need an emulated device, a GPU or minutes.
MARKS = "not slow and not cuda and not metal and not gpu"

Table = dict[str, Any]


def read() -> dict[str, Table]:
    """The tables by name."""
    return dict(json.loads(FILE.read_text(encoding="utf-8")))


def page_of(table: Table) -> Path:
    return FILE.parents[1] / str(table["page"])


def tests_of(table: Table) -> list[str]:
    """The pytest ids that a table names."""
    return [test for row in table["rows"] for _, *tests in row[1:] for test in tests]


def render(table: Table) -> str:
    """The Markdown of a table."""

    def shown(cell: list[str]) -> str:
        text, *tests = cell
        if not table.get("links") or not tests:
            return text
        file, test = re.sub(r"\[.*", "", tests[0]).split("::")
        up = "../" * (len(page_of(table).relative_to(ROOT).parts) - 1)
        return f"[{text}]({up}{file}#{test})"

    def line(cells: list[str]) -> str:
        return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"

    columns = table["columns"]
    rows = [line([name, *map(shown, cells)]) for name, *cells in table["rows"]]
    return "\n".join([line(columns), "|---" * len(columns) + "|", *rows])


def written(page: str, name: str, table: Table) -> str:
    """The text of a page with the table between its marks. Raises ValueError without marks."""
    start = rf"<!-- table {name}: [^>]*-->\n"
    new, count = re.subn(
        rf"({start}).*?(?=<!-- end -->)",
        lambda match: match[1] + render(table) + "\n",
        page,
        flags=re.DOTALL,
    )
    if count != 1:
        raise ValueError(f"{table['page']} must have the marks of the table {name} once")
    return new


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail on a difference")
    parser.add_argument("--run", nargs="?", const=MARKS, metavar="MARKS", help="run the tests")
    arguments = parser.parse_args()
    tables = read()
    if arguments.run is not None:
        tests = sorted({test for table in tables.values() for test in tests_of(table)})
        command = [sys.executable, "-m", "pytest", "-m", arguments.run, *tests]
        return subprocess.run(command, cwd=ROOT).returncode
    differ = set()
    for name, table in tables.items():
        page = page_of(table)
        text = page.read_text(encoding="utf-8")
        if (new := written(text, name, table)) != text:
            differ.add(table["page"])
            if not arguments.check:
                page.write_text(new, encoding="utf-8")
    for page in sorted(differ):
        print(f"docs/{page} {'differs from' if arguments.check else 'has new'} tables")
    return int(arguments.check and bool(differ))


if __name__ == "__main__":
    sys.exit(main())
