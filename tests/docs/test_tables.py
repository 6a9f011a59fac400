"""The tables of docs/reference/tables.json: the pages show them, and each claim names its tests."""

import ast
import functools
import re
import runpy
from types import SimpleNamespace

import pytest

from pages import ROOT

docs_tables = SimpleNamespace(**runpy.run_path(str(ROOT / "scripts" / "docs_tables.py")))
TABLES = docs_tables.read()
TESTS = sorted({test for table in TABLES.values() for test in docs_tables.tests_of(table)})
# A cell that says one of these needs no test.
NOTHING = r"no\b|none\b|.*\b[Nn]ot (tried|tested)\b"


@functools.cache
def functions(file: str) -> set[str]:
    """The names of a test file's functions, from its source alone."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", TABLES)
def test_page_has_the_table(name):
    """If not: python scripts/docs_tables.py writes it."""
    text = docs_tables.page_of(TABLES[name]).read_text(encoding="utf-8")
    assert docs_tables.written(text, name, TABLES[name]) == text


def test_every_marked_table_is_in_the_file():
    pages = {docs_tables.page_of(table) for table in TABLES.values()}
    marks = [m for p in pages for m in re.findall(r"<!-- table (\w+):", p.read_text("utf-8"))]
    assert sorted(marks) == sorted(TABLES)


@pytest.mark.parametrize("name", TABLES)
def test_every_cell_names_a_test_or_says_no(name):
    table = TABLES[name]
    for _, *cells in table["rows"]:
        assert len(cells) == len(table["columns"]) - 1
        for text, *tests in cells:
            assert tests or re.match(NOTHING, text), text


@pytest.mark.parametrize("test", TESTS)
def test_named_test_exists(test):
    file, function = re.fullmatch(r"(tests/[\w/]+\.py)::(test_\w+)(?:\[.+\])?", test).groups()
    assert function in functions(file)
