"""No circle of imports among the modules of the Python package.

A module imports what its statements name, at its top or in a function; an import for type checkers
only does not count. ``from tf_lstm_ops import keras`` imports the module keras. That Python runs
``tf_lstm_ops/__init__.py`` first, as it does before every other module, is no import here.
"""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(importlib.util.find_spec("tf_lstm_ops").origin).parent


def modules(package: Path) -> dict[str, Path]:
    """The files of a package by the name of the module, "package" for __init__.py."""
    names = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package.parent).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those below ``if TYPE_CHECKING``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from (each for other in child.orelse for each in (other, *statements(other)))
        else:
            yield child
            yield from statements(child)


def imported(source: str, package: str) -> Iterator[str]:
    """The full names in the imports of a module; ``package`` is that which has the module."""
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(base, package)
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (each.value for each in node.args[:1] if isinstance(each, ast.Constant))


def graph(package: Path) -> dict[str, set[str]]:
    """The modules of the package that each of its modules imports."""
    files = modules(package)
    found: dict[str, set[str]] = {}
    for name, path in files.items():
        own = name if path.stem == "__init__" else name.rpartition(".")[0]
        wanted = imported(path.read_text(encoding="utf-8"), own)
        # The last part is a module, or a name in a module.
        named = (full if full in files else full.rpartition(".")[0] for full in wanted)
        found[name] = {module for module in named if module in files}
    return found


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """The names along a circle of imports, the first one again at the end; [] if there is none."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


def test_no_module_imports_itself_through_others() -> None:
    found = graph(PACKAGE)
    assert found["tf_lstm_ops.raw_ops.common"] > {"tf_lstm_ops.dialects"}  # the graph is not empty
    assert " -> ".join(circle(found)) == ""


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import p.b", True),
        ("from p import b", True),
        ("from p.b import function", True),
        ("from . import b", True),
        ("from .b import function", True),
        ("def f():\n    from p import b", True),
        ("def f():\n    return importlib.import_module('p.b')", True),
        ("if TYPE_CHECKING:\n    from p import b\nelse:\n    from p import c", False),
        ("if typing.TYPE_CHECKING:\n    from p import b", False),
        ("if TYPE_CHECKING:\n    pass\nelse:\n    from p import b", True),
        ("from p import c", False),
        ("import b", False),
    ],
)
def test_a_circle_of_two(tmp_path: Path, source: str, expected: bool) -> None:
    """Module b imports a, and a has one import."""
    package = tmp_path / "p"
    package.mkdir()
    for name, text in {"__init__": "", "a": source, "b": "import p.a", "c": ""}.items():
        (package / f"{name}.py").write_text(text)
    assert circle(graph(package)) in (
        [["p.a", "p.b", "p.a"], ["p.b", "p.a", "p.b"]] if expected else [[]]
    )
