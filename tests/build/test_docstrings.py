"""Every public function, class and method documents what it takes, returns and raises.

The check reads the package's source. Only the functions of raw_ops have sections that are not in
it, from the table raw_ops/sections.py. Docstrings have Google's sections.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import tf_lstm_ops
from tf_lstm_ops import raw_ops
from tf_lstm_ops.raw_ops import sections

PACKAGE = Path(tf_lstm_ops.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
CHECKS = ("require", "require_shape")  # of _refusal.py and _arrays.py: they raise ValueError
SECTIONS = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Call \w+):$")


def problems(source: str) -> Iterator[str]:
    """What the docstrings of a module lack, as "name: what"."""
    tree = ast.parse(source)
    if not ast.get_docstring(tree):
        yield "module: docstring"
    for node in public(tree.body):
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}: {lack}" for lack in lacks_of_class(node))
            for method in public(node.body):
                yield from (f"{node.name}.{method.name}: {lack}" for lack in lacks(method))
        else:
            yield from (f"{node.name}: {lack}" for lack in lacks(node))


def public(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node


def lacks_of_class(node: ast.ClassDef) -> Iterator[str]:
    """Fields are attributes; the arguments of __init__ belong in the docstring of the class."""
    doc = ast.get_docstring(node) or ""
    if not doc:
        yield "docstring"
    fields = [s.target.id for s in node.body if isinstance(s, ast.AnnAssign)]
    given = names(doc, "Attributes")
    yield from (f"Attributes: {f}" for f in fields if not f.startswith("_") and f not in given)
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name in ("__init__", "__post_init__"):
            yield from lacks_of_arguments(method, doc)
            yield from lacks_of_raises(method, doc)


def lacks(function: ast.FunctionDef) -> Iterator[str]:
    decorators = {ast.unparse(d).rpartition(".")[2] for d in function.decorator_list}
    if "setter" in decorators:
        return
    doc = docstring(function)
    if not doc:
        yield "docstring"
    if "property" in decorators:
        return
    yield from lacks_of_arguments(function, doc)
    yield from lacks_of_raises(function, doc)
    result = None
    for statement in own(function):
        if isinstance(statement, ast.Yield | ast.YieldFrom):
            result = "Yields"
        elif isinstance(statement, ast.Return) and statement.value is not None:
            result = result or "Returns"
    if result and not section(doc, result):
        yield result


def docstring(function: ast.FunctionDef) -> str:
    """That of the source; of a function of raw_ops, that at run time."""
    if function.name in raw_ops.__all__:
        return inspect.getdoc(getattr(raw_ops, function.name)) or ""
    return ast.get_docstring(function) or ""


def lacks_of_arguments(function: ast.FunctionDef, doc: str) -> Iterator[str]:
    a = function.args
    arguments = [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]
    taken = [argument.arg for argument in arguments if argument.arg not in ("self", "cls")]
    given = names(doc, "Args")
    yield from (f"Args: {name}" for name in taken if name not in given)
    yield from (f"Args: {name}, which is no argument" for name in given if name not in taken)


def lacks_of_raises(function: ast.FunctionDef, doc: str) -> Iterator[str]:
    for statement in own(function):
        if isinstance(statement, ast.Raise):
            raises = statement.exc is not None  # else it only passes an exception on
        elif isinstance(statement, ast.Call):
            raises = ast.unparse(statement.func) in CHECKS
        else:
            raises = False
        if raises and not section(doc, "Raises"):
            yield "Raises"
            return


def own(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """The nodes of a function but those of functions in it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            pending.extend(ast.iter_child_nodes(node))


def section(doc: str, title: str) -> list[str]:
    """The lines of a section of a docstring, without the section's indentation."""
    lines = iter(doc.splitlines())
    for line in lines:
        if line == f"{title}:":
            break
    found = []
    for line in lines:
        if line and not line.startswith(" "):
            break
        found.append(line)
    return textwrap.dedent("\n".join(found)).strip().splitlines()


def entries(doc: str, title: str) -> dict[str, str]:
    """What a section says of each of its names, which are before the colon of an entry."""
    text = "\n".join(section(doc, title))
    found = (re.sub(r"\s+", " ", entry).partition(":") for entry in re.split(r"\n(?! )", text))
    return {name: text for head, _, text in found for name in re.findall(r"\w+", head)}


def names(doc: str, title: str) -> set[str]:
    """What a section describes."""
    return set(entries(doc, title))


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_docstrings_are_complete(module: Path) -> None:
    assert list(problems(module.read_text())) == []


RAW_OPS = [
    node
    for module in ("block_cell", "cudnn_params", "cudnn_rnn", "mpsgraph")
    for node in public(ast.parse((PACKAGE / "raw_ops" / f"{module}.py").read_text()).body)
    if isinstance(node, ast.FunctionDef)
]


@pytest.mark.parametrize("function", RAW_OPS, ids=lambda node: node.name)
def test_ops_say_their_defaults(function: ast.FunctionDef) -> None:
    """And what they return in a sentence: it does not begin with the fields."""
    doc = docstring(function)
    described = entries(doc, "Args")
    defaults = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    optional = [argument.arg for argument, default in defaults if default is not None]
    assert [name for name in optional if "Default" not in described[name]] == []
    assert not section(doc, "Returns")[0].startswith("namedtuple")


@pytest.mark.parametrize("table", ["ARGUMENTS", "RETURNS", "RAISES"])
def test_every_text_of_the_ops_is_used(table: str) -> None:
    """An entry that comes too late, or whose pattern is wrong, is not."""
    used = set()
    for op in raw_ops.__all__:
        used.update(sections.of_op(getattr(sections, table), op)[:1])
        used.update(sections.of_arguments(op, inspect.signature(getattr(raw_ops, op)).parameters))
    assert [entry for entry in getattr(sections, table) if entry not in used] == []


COMPLETE = '''
"""A module."""

class Pair(NamedTuple):
    """Two sizes.

    Attributes:
      a, b: the sizes.
    """

    a: int
    b: int

    @property
    def area(self):
        """The product."""
        return self.a * self.b

def scaled(
    pair, *others, factor, **options
):
    """Scales pairs.

    Args:
      pair: the first one.
      *others: the
        rest.
      factor,
        **options: how.

    Returns:
      The pairs: new ones.

    Raises:
      ValueError: factor is 0.
    """
    require(factor, "factor must not be 0")
    return [pair]

def each(pairs):
    """Iterates.

    Args:
      pairs: what over.

    Yields:
      Each pair.

    Raises:
      ValueError: there is none.
    """
    if not pairs:
        raise ValueError
    yield from pairs
'''


def test_a_complete_module_has_no_problems() -> None:
    assert list(problems(COMPLETE)) == []


@pytest.mark.parametrize(
    ("removed", "problem"),
    [
        ('"""A module."""', "module: docstring"),
        ("a, b: the sizes", "Pair: Attributes: a"),
        ('"""The product."""', "Pair.area: docstring"),
        ("pair: the first one", "scaled: Args: pair"),
        ("*others: the\n        rest", "scaled: Args: others"),
        ("      factor,\n        **options: how.\n", "scaled: Args: factor"),
        ("    Returns:\n      The pairs: new ones.\n", "scaled: Returns"),
        ("    Raises:\n      ValueError: factor is 0.\n", "scaled: Raises"),
        ("    Yields:\n      Each pair.\n", "each: Yields"),
        ("    Raises:\n      ValueError: there is none.\n", "each: Raises"),
        ("**options\n", "scaled: Args: options, which is no argument"),
    ],
)
def test_what_is_missing_is_found(removed: str, problem: str) -> None:
    assert COMPLETE.count(removed) == 1
    assert problem in list(problems(COMPLETE.replace(removed, "")))
