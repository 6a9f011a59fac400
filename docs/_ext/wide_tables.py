"""Pages of measurements are as wide as the window. site.css has the rules of the class."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

HEADING = re.compile(r"(?<=<th class=\"head)[^>]*>.*?(?=</th>)", re.DOTALL)
PARTS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
PAGES = ("project/benchmarks/", "reference/features")


def breakable(heading: re.Match[str]) -> str:
    """A heading in which browsers may break names such as LSTMBlockCell between their parts."""
    return re.sub(r"\b\w{10,}\b(?![^<]*>)", lambda word: PARTS.sub("<wbr>", word[0]), heading[0])


def widen(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Puts the text of a page into an element of the class."""
    if page.startswith(PAGES) and "body" in context:
        body = HEADING.sub(breakable, context["body"])
        context["body"] = f'<div class="wide-tables">{body}</div>'


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", widen)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
