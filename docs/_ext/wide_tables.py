"""Pages of measurements are as wide as the window. site.css has the rules of the class."""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

PAGES = ("project/benchmarks/", "reference/features")


def widen(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Puts the text of a page into an element of the class."""
    if page.startswith(PAGES) and "body" in context:
        context["body"] = f'<div class="wide-tables">{context["body"]}</div>'


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", widen)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
