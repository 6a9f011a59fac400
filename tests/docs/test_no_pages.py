"""Messages and docstrings name no file of the checkout: a wheel does not contain these files.

Comments may: who reads the source has the checkout.
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
FILE = re.compile(r"(?<![\w./-])(docs|cc|tests|benchmarks)/")
PAGE = re.compile(r"\bdocs/")  # native code also names its own sources


def texts(source: str) -> Iterator[tuple[int, str]]:
    """The strings of a Python file, docstrings included, with their lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def literals(source: str) -> str:
    """The string literals of a C++ file; comments, also those with quotes, are left out."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    found = (match.group() for match in token.finditer(source))
    return "\n".join(text for text in found if not text.startswith("/"))


@pytest.mark.skipif(not PYTHON, reason="tests are not in a checkout")
def test_texts_in_python() -> None:
    found = [
        f"{path.relative_to(CHECKOUT)}:{line}: {text.strip().splitlines()[0]}"
        for path in PYTHON
        for line, text in texts(path.read_text())
        if FILE.search(text)
    ]
    assert found == []


@pytest.mark.skipif(not NATIVE, reason="tests are not in a checkout")
def test_messages_in_native_code() -> None:
    found = [str(p.relative_to(CHECKOUT)) for p in NATIVE if PAGE.search(literals(p.read_text()))]
    assert found == []


def test_what_counts_as_a_text() -> None:
    python = '"""See docs/a."""\nraise ValueError(f"{1} docs/a, tests/b")  # docs/a\n"x/docs/a"\n'
    assert [line for line, text in texts(python) if FILE.search(text)] == [1, 2]
    native = '// docs/a\nF("see " // "docs/a"\n "docs/a"); /* docs/a */'
    assert PAGE.findall(literals(native)) == ["docs/"]
