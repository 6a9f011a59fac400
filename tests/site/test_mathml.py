"""docs/_ext/mathml.py: equations as MathML."""

from xml.etree import ElementTree

import pytest
from mathml import mathml
from sphinx.errors import ExtensionError

pytestmark = pytest.mark.site
NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"


def parsed(tex: str) -> ElementTree.Element:
    return ElementTree.fromstring(mathml(tex, "block"))


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"h = o \circ \tanh(c)", "h=o∘tanh(c)"),
        (r"\mathrm{cs\_prev} + \mathrm{wci}", "cs_prev+wci"),
        (r"W_i \, h_{\mathrm{prev}} + R_y^{\text{T}}", "Wihprev+RyT"),
        (r"\text{only if } \mathrm{cell\_clip} > 0", "only if cell_clip>0"),
    ],
)
def test_text(tex: str, text: str) -> None:
    assert "".join(parsed(tex).itertext()).replace("\N{NO-BREAK SPACE}", " ") == text


def test_names_have_one_typeface() -> None:
    """Of one letter or several; functions and the T of a transpose are upright in the same font."""
    tex = r"\sigma(w) \, \mathrm{cs\_prev} + \tanh(\max(R_y^{\text{T}}, b))"
    found = [*parsed(tex).iter(f"{NAMESPACE}mi")]
    names = {mi.text for mi in found if mi.get("class") == "name"}
    assert names == {"σ", "w", "cs_prev", "R", "y", "b"}
    assert {mi.get("mathvariant") for mi in found if mi.text in names} == {"normal"}
    assert {mi.text for mi in found} - names == {"tanh", "max"}


def test_lines_are_aligned_rows() -> None:
    found = parsed("\\begin{aligned}\na &= b && \\text{always} \\\\\nc &= d\n\\end{aligned}")
    rows = [["".join(cell.itertext()) for cell in row] for row in found.iter(f"{NAMESPACE}mtr")]
    assert rows == [["a", "=b", "", "always"], ["c", "=d"]]


@pytest.mark.parametrize("tex", [r"\unknown{x}", r"\text{a\_b}", "a & b"])
def test_tex_that_would_remain_is_an_error(tex: str) -> None:
    with pytest.raises(ExtensionError, match="cannot convert"):
        mathml(tex, "block")
