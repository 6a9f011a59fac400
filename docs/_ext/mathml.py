"""Equations as MathML, which browsers show without scripts. Pages get it when they are built."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml import converter
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# The converter makes an element of each letter of \mathrm{...}. Names and these letters get the
# same class, and site.css the same typeface; without it browsers take another one for one letter.
LETTERS = re.compile(r'(?:<mi mathvariant="normal">[^<]+</mi>){2,}|<mi>[^<](?:[^<;]*;)?</mi>')
# It makes operators of these, around which browsers leave spaces.
FUNCTIONS = re.compile(r"<mo>(max|min)</mo>")


def joined(letters: re.Match[str]) -> str:
    """One element of a name of one or more letters."""
    return f'<mi class="name" mathvariant="normal">{re.sub("<[^>]+>", "", letters[0])}</mi>'


def mathml(tex: str, display: str) -> str:
    """Converts an equation.

    Args:
      tex: TeX as GitHub shows it.
      display: "block" or "inline".

    Returns:
      An element <math>.

    Raises:
      ExtensionError: the converter has left TeX in it.
    """
    # The converter knows align*, which GitHub refuses, and leaves aligned as it is.
    found = converter.convert(tex.replace("{aligned}", "{align*}"), display=display)
    try:
        text = "".join(ElementTree.fromstring(found).itertext())
    except ElementTree.ParseError:  # an "&" that separates no columns
        text = "\\"
    if "\\" in text:
        raise ExtensionError(f"latex2mathml cannot convert all of this: {tex}")
    return FUNCTIONS.sub(r"<mi>\1</mi>", LETTERS.sub(joined, found))


def visit_inline(writer: Any, node: nodes.math) -> None:
    """Writes an equation in a line of text."""
    writer.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(writer: Any, node: nodes.math_block) -> None:
    """Writes an equation of its own."""
    writer.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
