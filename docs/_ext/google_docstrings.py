"""Prepares this package's docstrings for sphinx.ext.napoleon.

An entry of a section may describe several arguments, ``w, b: ...``, and its names may take several
lines. Napoleon reads one argument per entry, so each gets an entry of its own here, with the same
text and the type from the signature, ``w (Array): ...``. Napoleon takes the words before a colon in
"Returns" as a type, so this section becomes a field here.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import keras
from sphinx.application import Sphinx
from sphinx.util import inspect as sphinx_inspect

from tf_lstm_ops.keras import types as aliases

SECTION = re.compile(r"(Args|Attributes|Call arguments):")
RESULT = re.compile(r"(Returns|Call returns):")
ENTRY = re.compile(r"(?P<names>\**\w+(?:,\s+\**\w+)*):\s+(?P<text>.*)", re.DOTALL)
BEFORE_NAPOLEON = 400  # it has the default priority, 500


def entries(lines: list[str]) -> list[str]:
    """The entries of a section; the lines of an entry after its first one are indented."""
    return re.split(r"\n(?! |\n|$)", textwrap.dedent("\n".join(lines)).rstrip())


def expanded(entry: str, types: Mapping[str, str]) -> Iterator[str]:
    """One entry for each name of an entry, with its type if that is known."""
    match = ENTRY.fullmatch(entry)
    if match is None:
        yield entry
        return
    text = re.sub(r"^(\w)\.", r"\1\\.", match["text"])  # "I." alone would begin a numbered list
    for name in re.split(r",\s+", match["names"]):
        type_ = None if name.startswith("*") else types.get(name)
        yield f"{name} ({type_}): {text}" if type_ else f"{name}: {text}"


def with_single_entries(lines: list[str], types: Mapping[str, str]) -> list[str]:
    """A docstring in which each entry describes one argument.

    Args:
      lines: of the docstring, without its indentation.
      types: of the arguments, by name.

    Returns:
      The new lines.
    """
    found: list[str] = []
    rest = list(lines)
    while rest:
        found.append(rest.pop(0))
        result = RESULT.fullmatch(found[-1])
        if not result and not SECTION.fullmatch(found[-1]):
            continue
        section = []
        while rest and (not rest[0] or rest[0].startswith(" ")):
            section.append(rest.pop(0))
        if result:
            text = textwrap.dedent("\n".join(section)).strip()
            found[-1:] = [f":{result[1]}:", *textwrap.indent(text, "  ").splitlines(), ""]
            continue
        for entry in entries(section):
            for single in expanded(entry, types):
                found += textwrap.indent(single, "  ").splitlines()
        found.append("")
    return found


def types_of(function: Any) -> dict[str, str]:
    """The annotations of a function or class, as in the source, and the defaults of its arguments.

    The annotation of the result is "return".
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a module
        return {}
    found = {name: p.annotation for name, p in signature.parameters.items()}
    found["return"] = signature.return_annotation
    # The annotations of named tuples are ForwardRefs.
    words = {name: getattr(value, "__forward_arg__", value) for name, value in found.items()}
    types = {name: in_full(value) for name, value in words.items() if isinstance(value, str)}
    for name in types.keys() & signature.parameters.keys():
        default = signature.parameters[name].default
        if isinstance(default, str | int | float | None):  # others are objects without a short text
            types[name] += f", default {default!r}"
    return types


def in_full(annotation: str) -> str:
    """An annotation with the aliases of tf_lstm_ops.keras.types written out."""
    for name in aliases.__all__:
        value = getattr(aliases, name)
        text = value if isinstance(value, str) else str(value).replace("typing.", "")
        annotation = re.sub(rf"\b{name}\b", lambda _, text=text: text, annotation)
    return annotation


def is_record(obj: Any) -> bool:
    """Whether the attributes of a class are the arguments of its constructor."""
    return dataclasses.is_dataclass(obj) or hasattr(obj, "_fields")


def property_table(class_: type) -> list[str]:
    """The properties of a class as a table of reStructuredText; nothing if there are none."""
    own = [
        name
        for name, value in inspect.getmembers(class_, lambda value: isinstance(value, property))
        if is_own(value.fget) and not is_of_keras(name) and not name.startswith("_")
    ]
    if not own:
        return []
    table = [".. list-table::", "   :header-rows: 1", "   :class: properties", ""]
    table += ["   * - Property", "     - Type", "     - Meaning"]
    for name in own:
        function = getattr(class_, name).fget
        text = textwrap.indent(inspect.getdoc(function) or "", "       ").lstrip()
        table += [f"   * - ``{name}``", f"     - ``{types_of(function)['return']}``"]
        table += f"     - {text}".splitlines()
    return ["", *table, ""]


def is_own(function: Any) -> bool:
    """Whether this package defines a function, not Keras, dataclasses or NamedTuple."""
    return (getattr(function, "__module__", None) or "").split(".")[0] == "tf_lstm_ops"


def is_of_keras(name: str) -> bool:
    """Whether Keras calls a member of a class, such as `build`, `call` and `get_config`."""
    return hasattr(keras.layers.RNN, name) or name == "supports_jit"


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Changes the lines of a docstring in place."""
    if what == "class" and is_record(obj):
        lines[:] = ["Args:" if line == "Attributes:" else line for line in lines]
    if what == "module":  # It has no fields. A list of them would stand there as ":raises X:".
        text = re.sub(
            r"^Raises:\n  (\w+): ", r"The import raises ``\1``: ", "\n".join(lines), flags=re.M
        )
        lines[:] = text.splitlines()
    types = types_of(obj.__init__ if what == "class" and not is_record(obj) else obj)
    lines[:] = with_single_entries(lines, types)
    if what == "class":
        lines += property_table(obj)
    if what != "class" and types.get("return", "None") != "None":
        lines += ["", f":rtype: {types['return']}"]


def constructor(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, args: str | None, result: str | None
) -> tuple[str, None] | None:
    """The signature of a layer: its __init__. The __new__ of Keras takes *args and **kwargs."""
    if what != "class" or args != "(*args, **kwargs)":
        return None
    own = sphinx_inspect.signature(obj.__init__, bound_method=True)
    return sphinx_inspect.stringify_signature(own, show_annotation=False), None


def skip(
    app: Sphinx, what: str, name: str, obj: Any, is_skipped: bool, options: Any
) -> bool | None:
    """Skips properties, which are in the table of their class, and members that are not own: those
    that classes inherit from Keras, dataclasses and tuples, or that override them.
    """
    if isinstance(obj, property):
        return True
    is_member_of_keras = what == "class" and is_of_keras(name)
    return None if is_own(getattr(obj, "__func__", obj)) and not is_member_of_keras else True


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=BEFORE_NAPOLEON)
    app.connect("autodoc-process-signature", constructor)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
