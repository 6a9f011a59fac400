"""The built site: every page, every argument of the API, no link that leads nowhere."""

import importlib
import inspect
import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keras
import pytest
import repository_pages

from pages import ROOT, blocks
from site_pages import Page

pytestmark = pytest.mark.site

MODULES = ("export", "inference", "keras", "raw_ops", "stock", "weights")
DOCS = repository_pages.DOCS
COPIES = DOCS / repository_pages.COPIES
SOURCES = [
    *(page for page in DOCS.rglob("*.md") if not page.is_relative_to(COPIES)),
    *(ROOT / path for path in repository_pages.outside()),
]


def test_every_source_is_a_page(pages: dict[str, Page]) -> None:
    sources = {source.relative_to(ROOT).as_posix() for source in SOURCES}
    shown = {repository_pages.page_of(source) for source in sources}
    assert {"project/CONTRIBUTING.md", "project/benchmarks/table.md", "index.md"} <= shown
    assert {str(Path(page).with_suffix(".html")) for page in shown - {None}} <= set(pages)


def public_objects(module: str) -> Iterator[tuple[str, Any]]:
    """The public functions, classes and methods of a module that the package defines.

    Methods of Keras, such as `call`, are left out: Keras calls them.
    """
    found = importlib.import_module(f"tf_lstm_ops.{module}")
    for name in found.__all__:
        value = getattr(found, name)
        if inspect.ismodule(value):
            continue
        yield name, value
        for member in dir(value) if inspect.isclass(value) else ():
            method = getattr(value, member)
            is_own = str(getattr(method, "__module__", "")).startswith("tf_lstm_ops.")
            is_shown = is_own and not member.startswith("_")
            if inspect.isroutine(method) and is_shown and not hasattr(keras.layers.RNN, member):
                yield f"{name}.{member}", method


def arguments(function: Callable[..., Any]) -> list[str]:
    """As they are written in a call or definition: with stars."""
    if inspect.isclass(function) and not hasattr(function, "_fields"):  # not a named tuple
        function = function.__init__
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = inspect.signature(function).parameters.values()
    return [stars.get(p.kind, "") + p.name for p in found if p.name != "self"]


@pytest.mark.parametrize("module", MODULES)
def test_every_argument_is_described_with_its_type(module: str, pages: dict[str, Page]) -> None:
    count = 0
    for name, function in public_objects(module):
        page = pages.get(f"api/{module}/{name.partition('.')[0]}.html", pages[f"api/{module}.html"])
        text = page.described(f"tf_lstm_ops.{module}.{name}")
        assert text, name
        for argument in arguments(function):
            count += 1
            type_ = "" if argument.startswith("*") else r"\(.+?\) "  # that of **kwargs is Any
            entry = re.escape(f"<strong>{argument}</strong> ") + type_ + "– "
            assert re.search(entry + r"(<\w+>)*[\w<\[“(]", text), f"{name}: {argument}"
    assert count or module == "stock"


def test_signatures_of_layers_have_their_arguments(pages: dict[str, Page]) -> None:
    heading = pages["api/keras/LSTM.html"].described("tf_lstm_ops.keras.LSTM").partition("</dt>")[0]
    assert "projection_size" in heading
    assert "args" not in heading.replace("kwargs", "")


@pytest.mark.parametrize("module", ["keras", "inference"])
def test_every_class_has_a_page_with_its_source(module: str, pages: dict[str, Page]) -> None:
    found = importlib.import_module(f"tf_lstm_ops.{module}")
    classes = [name for name in found.__all__ if inspect.isclass(getattr(found, name))]
    assert len(classes) >= 5
    for name in classes:
        page = pages[f"api/{module}/{name}.html"]
        heading = page.described(f"tf_lstm_ops.{module}.{name}").partition("</dt>")[0]
        assert re.search(r'href="[./]*_modules/tf_lstm_ops/[\w/]+\.html#', heading), name


def test_page_of_a_layer_has_its_equations_weights_and_defaults(pages: dict[str, Page]) -> None:
    for name, count in (("LSTM", 2), ("GRU", 2)):
        page = pages[f"api/keras/{name}.html"]
        assert page.tags.count("math") == count
        assert ">recurrent_kernel</span>" in page.text
        assert "https://keras.io/api/layers/recurrent_layers/" in page.text
        described = page.described(f"tf_lstm_ops.keras.{name}")
        assert re.search(r"<strong>activation</strong> \(.*default.*tanh.*\) – ", described)


def test_properties_are_rows_of_a_table(pages: dict[str, Page]) -> None:
    text = pages["api/keras/LSTM.html"].text
    [table] = re.findall(r'<table class="[^"]*properties.*?</table>', text, re.DOTALL)
    names = set(re.findall(r"<tr[^>]*><td><p><code[^>]*><span[^>]*>(\w+)<", table))
    assert {"uses_fused_op", "fallback_reason", "cell_clip"} <= names
    assert "states" not in names  # of Keras


def test_no_link_leads_nowhere(pages: dict[str, Page], site: Path) -> None:
    count = 0
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = link.partition("#")
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
            target = target if file else path
            assert (site / target).is_file(), f"{path}: {link}"
            if anchor and target in pages:
                assert anchor in pages[target].ids, f"{path}: {link}"
            count += 1
    assert count > 1000


@pytest.mark.parametrize("source", ["docs/reference/features.md", "docs/interoperability.md"])
def test_tables_link_every_test(source: str, pages: dict[str, Page], site: Path) -> None:
    """Without an address of the repository: copies of the tests, and the functions in them."""
    text = (ROOT / source).read_text(encoding="utf-8")
    tests = re.findall(r"\]\(((?:\.\./)+tests/[\w/]+\.py)#(\w+)\)", text)
    path = f"{source.removeprefix('docs/').removesuffix('.md')}.html"
    address = r'href="([^"]+\.py)(?:\.txt#:~:text=def%20|#)(\w+)'
    links = re.findall(address, pages[path].text)
    assert len(tests) > 30 and [test for _, test in links] == [test for _, test in tests]
    for file, test in links:
        if "://" not in file:
            copy = (site / path).parent / f"{file}.txt"
            assert f"\ndef {test}(" in copy.read_text(encoding="utf-8")


def test_no_picture_remains(pages: dict[str, Page]) -> None:
    """Each is an image for each theme. test_browser.py looks which one is seen."""
    assert [path for path, page in pages.items() if "picture" in page.tags] == []


def test_nothing_is_loaded_from_other_servers(pages: dict[str, Page], site: Path) -> None:
    for path, page in pages.items():
        assert [r for r in page.resources if re.match(r"(https?:)?//", r)] == [], path
    for style in site.rglob("*.css"):
        assert re.findall(r"url\([\"']?(?:https?:)?//|@import", style.read_text("utf-8")) == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda file: file.relative_to(ROOT).as_posix())
def test_every_equation_is_mathml(source: Path, pages: dict[str, Page]) -> None:
    page = repository_pages.page_of(source.relative_to(ROOT).as_posix())
    if page is None or source.suffix != ".md" or source.parent.parent == DOCS / "api":
        return  # the page of a class includes equations of another page
    html = pages[str(Path(page).with_suffix(".html"))]
    assert html.tags.count("math") == len(blocks(source.read_text("utf-8"), "math"))
    assert not any("mathjax" in r.lower() for r in html.resources)


def test_titles_differ(pages: dict[str, Page]) -> None:
    """Also without the words that only say what kind of page it is."""
    titles: dict[str, list[str]] = {}
    for path, page in pages.items():
        if path != "search.html":
            title = re.sub("<[^>]+>", "", re.findall(r"<h1>(.*?)<a class", page.text, re.DOTALL)[0])
            titles.setdefault(re.sub(r": reference$|^tf_lstm_ops\.", "", title).lower(), []).append(
                path
            )
    assert {title: paths for title, paths in titles.items() if len(paths) > 1} == {}


def test_no_equation_has_a_prime(pages: dict[str, Page]) -> None:
    """It is hardly visible in MathML. The mark of a transpose is a superscript T."""
    primes = {
        path: re.findall("(?:′|&#x0*2032;)</m[io]>", page.text) for path, page in pages.items()
    }
    assert {path: found for path, found in primes.items() if found} == {}


def test_no_field_of_a_docstring_remains(pages: dict[str, Page]) -> None:
    """Such as "raises ImportError:" in the text of a module."""
    found = {
        path: re.findall(r"<dt[^>]*>(raises|param|return)\w* [^<]*<", page.text)
        for path, page in pages.items()
    }
    assert {path: fields for path, fields in found.items() if fields} == {}
