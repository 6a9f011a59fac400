"""What the search finds first, and what it does not find.

Words lead to a section that explains them, although other pages have the words more often. They are
entries of Sphinx' index, which the search ranks by far above words of the text.
"""

from __future__ import annotations

import fnmatch
import re

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# By page and heading.
WORDS = {
    "api/c": {"C API": ("C API", "C library", "C interface")},
    "guide/export": {"Save and load": ("checkpoint", "ModelCheckpoint")},
    "guide/keras": {
        "Masks": ("mask", "masking", "padding"),
        "Stateful layers": ("stateful", "reset_state"),
        "Attention": ("attention", "MultiHeadAttention"),
    },
    "guide/other_frameworks": {"PyTorch": ("batch_first", "nn.Linear")},
    "guide/weights": {"Checkpoints of other programs": ("checkpoint", "checkpoints")},
    "index": {"Install": ("windows", "macos", "platforms")},
}
# Decisions and logs: they have many words of users, and nothing to do for them.
UNLISTED = ("decisions/*", "project/benchmarks/NOTES", "project/benchmarks/threads")


def with_words(text: str, sections: dict[str, tuple[str, ...]], page: str) -> str:
    """A page in Markdown with entries of the index behind headings.

    Raises:
      ExtensionError: the page does not have a heading once.
    """
    for heading, words in sections.items():
        entries = ", ".join(f"! {word}" for word in words)
        text, count = re.subn(
            rf"^(#+ {re.escape(heading)}\n)",
            lambda match, entries=entries: f"{match[1]}\n```{{index}} {entries}\n```\n",
            text,
            flags=re.MULTILINE,
        )
        if count != 1:
            raise ExtensionError(f"search_words.py: {page} has {count} headings {heading!r}, not 1")
    return text


def insert(app: Sphinx, docname: str, content: list[str]) -> None:
    """Adds the words of a page that Sphinx has read."""
    content[0] = with_words(content[0], WORDS.get(docname, {}), docname)


def hide(app: Sphinx, doctree: nodes.document) -> None:
    """Keeps the words of a page out of the search."""
    page = app.env.docname
    if any(fnmatch.fnmatch(page, pattern) for pattern in UNLISTED):
        app.env.metadata[page]["no-search"] = ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", insert)
    app.connect("doctree-read", hide)
    return {"parallel_read_safe": True}
