"""Pages of the repository that are outside of docs, and links between pages and other files.

Sphinx reads only files below docs. Before a build, the pages outside of docs are copied to a folder
that git ignores. Links in all pages are written for the repository. When a page is read, a link to
another page leads to that page of the site. A link to another file leads to the address of the file
in the repository, if one is known. If not, it leads to a copy of the file, as plain text; of a link
to a folder the text remains. An element <picture>, from
which a git host shows the image for its light or dark theme, becomes two images, of which the site
shows one. An element <picture> in another form is an error of the build.
"""

from __future__ import annotations

import functools
import json
import os
import re
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import project_url
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
COPIES = "project"  # the folder of the copies in docs; .gitignore and MANIFEST.in name it, too
OUTSIDE = (
    *("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"),
    *("benchmarks/*.md", "cc/**/README.md", "examples/**/*.md", "examples/notebooks/*.ipynb"),
)
FILES = "_static/files"  # the folder of the copies of linked files in the site
FRONT = {"README.md": "index.md"}  # the site has a front page of its own
# Pages that list others: a toctree of these, which a git host would show as code, is added.
CHILDREN = {
    "contributing/README": (
        *(f"{COPIES}/CONTRIBUTING", "testing", f"{COPIES}/cc/README", "design/*"),
        *("decisions/README", f"{COPIES}/benchmarks/NOTES"),
        *("reference/releases", f"{COPIES}/SECURITY", f"{COPIES}/CODE_OF_CONDUCT"),
    ),
    "design/threads": (f"{COPIES}/benchmarks/threads",),
    "reference/benchmarks": (
        f"{COPIES}/benchmarks/table",
        f"{COPIES}/benchmarks/scaling",
        f"{COPIES}/benchmarks/bfloat16",
        f"{COPIES}/benchmarks/int8_errors",
        f"{COPIES}/benchmarks/keras_on_torch",
        f"{COPIES}/benchmarks/stacks",
        f"{COPIES}/benchmarks/latency",
        f"{COPIES}/benchmarks/programs",
    ),
    f"{COPIES}/cc/README": (
        *(f"{COPIES}/cc/backends/*/README", f"{COPIES}/cc/backends/*/*/README"),
        f"{COPIES}/cc/session/README",
    ),
    f"{COPIES}/examples/README": (
        f"{COPIES}/examples/pytorch_to_c/README",
        f"{COPIES}/examples/c_api_op/README",
        f"{COPIES}/examples/notebooks/*",
    ),
}
TOCTREE = "\n```{{toctree}}\n:hidden:\n:glob:\n\n{}\n```\n"

CODE = r"^(?P<fence>```+).*?^(?P=fence)$|(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)"
LINK = r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])+)\]\((?P<target>[^)\s]+)\)"
PICTURE = (
    r'<picture\s*>\s*<source\s+media="\(prefers-color-scheme:\s*dark\)"\s+srcset="(?P<dark>[^"]+)"'
    r'\s*/?>\s*<img\s+src="(?P<light>[^"]+)"\s+width="(?P<width>\d+)"\s+alt="(?P<alt>[^"]+)"\s*/?>'
    r"\s*</picture\s*>"
)
OTHER_PICTURE = "(?P<other></?picture)"
FLAGS = re.MULTILINE | re.DOTALL | re.IGNORECASE
PARTS = re.compile(f"{CODE}|{LINK}|{PICTURE}|{OTHER_PICTURE}", FLAGS)
# The path is one from docs.
IMAGE = "```{{image}} /{file}\n:class: only-{theme}\n:width: {width}px\n:alt: {alt}\n```\n"


@functools.cache
def outside() -> list[str]:
    """The pages outside of docs, as paths from the root of the repository."""
    return sorted(
        file.relative_to(ROOT).as_posix() for pattern in OUTSIDE for file in ROOT.glob(pattern)
    )


def page_of(path: str) -> str | None:
    """The page of the site that shows a file of the repository.

    Args:
      path: from the root of the repository.

    Returns:
      The path of the page below docs; None if no page shows the file.
    """
    if path in FRONT:
        return FRONT[path]
    if path in outside():
        return f"{COPIES}/{path}"
    below = path.removeprefix("docs/")
    is_page = below != path and path.endswith((".md", ".rst")) and (ROOT / path).is_file()
    return below if is_page else None


def source_of(page: str) -> str:
    """The file of the repository that a page shows; the reverse of page_of.

    Args:
      page: the path of the page below docs.

    Returns:
      The path from the root of the repository.
    """
    copied = page.removeprefix(f"{COPIES}/")
    return copied if copied != page else f"docs/{page}"


def rewritten(
    text: str,
    source: str,
    file_url: Callable[[str], str | None],
    copy_url: Callable[[str], str | None],
    is_included: bool = False,
) -> str:
    """A page whose links lead to pages of the site and to files, and whose pictures are images.

    Args:
      text: Markdown.
      source: the path of the page from the root of the repository.
      file_url: returns the address of a file in the repository, given its path from the root; None
        if unknown.
      copy_url: returns the address of a copy of the file in the site; None for a folder.
      is_included: whether another page shows it, so that a link to a heading leads to its own page.

    Returns:
      The text with other links and images. Code is unchanged.

    Raises:
      ExtensionError: an element <picture> is not in the form that becomes two images.
    """
    folder = PurePosixPath(source).parent

    def image(match: re.Match[str], theme: str) -> str:
        file = os.path.relpath(ROOT / folder / match[theme], DOCS)
        alt = json.dumps(" ".join(match["alt"].split()))
        return IMAGE.format(file=file, theme=theme, width=match["width"], alt=alt)

    def link(match: re.Match[str]) -> str:
        if match["other"]:
            raise ExtensionError(
                f'{source}: a <picture> must have <source media="(prefers-color-scheme: dark)" '
                'srcset="…"> and <img src="…" width="…" alt="…">, with the attributes in this order'
            )
        if match["light"]:
            return image(match, "light") + "\n" + image(match, "dark")
        text, target = match["text"], match["target"]
        if target is None or re.match(r"[a-z]+:", target):  # code, another site
            return match[0]
        file, _, anchor = target.partition("#")
        if not file and not is_included:  # the same page
            return match[0]
        path = os.path.normpath(folder / file) if file else source
        anchor = anchor and f"#{anchor}"
        if page := page_of(path):
            return f"[{text}](/{page}{anchor})"
        if url := file_url(path):
            return f"[{text}]({url}{anchor})"
        if url := copy_url(path):
            # A browser scrolls to the function. MyST would offer a file for download instead.
            scroll = anchor and f"#:~:text=def%20{anchor[1:]}("
            return f'<a class="reference" href="{url}{scroll}">{text}</a>'
        return f"`{text}`" if path.endswith(text) else text

    return PARTS.sub(link, text)


def copy_pages(app: Sphinx) -> None:
    """Copies the pages outside of docs; removes copies of pages that are gone."""
    folder = DOCS / COPIES
    wanted = {folder / path: ROOT / path for path in outside()}
    for copy in folder.rglob("*"):
        if copy.is_file() and copy not in wanted:
            copy.unlink()
    for copy, file in wanted.items():
        # An unchanged copy keeps its time, so that Sphinx does not read it again.
        if not copy.is_file() or copy.read_bytes() != file.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())


def copy_file(app: Sphinx, docname: str, path: str) -> str | None:
    """Copies a file into the site; returns its address from a page, None for a folder."""
    if not (ROOT / path).is_file():
        return None
    copy = f"{FILES}/{path}.txt"  # as which any server has it shown
    (app.outdir / copy).parent.mkdir(parents=True, exist_ok=True)
    (app.outdir / copy).write_bytes((ROOT / path).read_bytes())
    return os.path.relpath(copy, PurePosixPath(docname).parent)


def rewrite_included(app: Sphinx, path: Path, docname: str, content: list[str]) -> None:
    """Rewrites the links of a page that another one includes."""
    source = os.path.normpath(PurePosixPath("docs") / path)
    copy_url = functools.partial(copy_file, app, app.env.docname)  # MyST passes it without folders
    content[0] = rewritten(content[0], source, project_url.file_url, copy_url, is_included=True)


def rewrite(app: Sphinx, docname: str, content: list[str]) -> None:
    """Rewrites the links of a page that Sphinx has read; adds a toctree to some pages."""
    file = app.env.doc2path(docname)
    source = source_of(file.relative_to(DOCS).as_posix())
    copy_url = functools.partial(copy_file, app, docname)
    if file.suffix == ".md":
        content[0] = rewritten(content[0], source, project_url.file_url, copy_url)
        if children := CHILDREN.get(docname):
            content[0] += TOCTREE.format("\n".join(f"/{child}" for child in children))
    elif file.suffix == ".ipynb":
        notebook = json.loads(content[0])
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                text = "".join(cell["source"])
                cell["source"] = rewritten(text, source, project_url.file_url, copy_url)
        content[0] = json.dumps(notebook)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    # A page is read again if the address of the repository has changed.
    app.add_config_value("repository_url", None, "env")
    app.connect("builder-inited", copy_pages)
    app.connect("source-read", rewrite)
    app.connect("include-read", rewrite_included)
    return {"parallel_read_safe": True}
