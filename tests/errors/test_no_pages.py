"""Messages name no page of docs/: a wheel does not contain these files.

Docstrings and comments may: who reads the source has the checkout.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PYTHON = sorted((CHECKOUT / "tf_lstm_ops").rglob("*.py"))
NATIVE = sorted(
    path
    for end in ("cc", "h", "mm", "cu", "cuh", "metal")
    for path in (CHECKOUT / "cc").rglob(f"*.{end}")
)
PAGE = re.compile(r"\bdocs/")


def texts(source: str) -> Iterator[tuple[int, str]]:
    """The strings of a Python file that are no docstrings, with their lines."""
    tree = ast.parse(source)
    statements = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in statements:
            yield node.lineno, node.value


def literals(source: str) -> str:
    """The string literals of a C++ file; comments, also those with quotes, are left out."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    found = (match.group() for match in token.finditer(source))
    return "\n".join(text for text in found if not text.startswith("/"))


@pytest.mark.skipif(not PYTHON, reason="tests are not in a checkout")
def test_messages_in_python() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}: {text}"
        for path in PYTHON
        for line, text in texts(path.read_text())
        if PAGE.search(text)
    ]
    assert found == []


@pytest.mark.skipif(not NATIVE, reason="tests are not in a checkout")
def test_messages_in_native_code() -> None:
    found = [str(p.relative_to(CHECKOUT)) for p in NATIVE if PAGE.search(literals(p.read_text()))]
    assert found == []


def test_what_counts_as_a_message() -> None:
    python = '"""See docs/a."""\nraise ValueError(f"see {1} docs/a")  # docs/a\n'
    assert [line for line, text in texts(python) if PAGE.search(text)] == [2]
    native = '// docs/a\nF("see " // "docs/a"\n "docs/a"); /* docs/a */'
    assert PAGE.findall(literals(native)) == ["docs/"]
