"""The documentation: examples run, links and paths lead somewhere."""

import re
from pathlib import Path

import pytest

from pages import ROOT, anchors, blocks, links, pasted, run_examples

DOCS = ROOT / "docs"
# docs/project has copies that docs/_ext/repository_pages.py makes when the site is built.
DOCS_PAGES = [page for page in DOCS.rglob("*.md") if not page.is_relative_to(DOCS / "project")]
PAGES = [
    *ROOT.glob("*.md"),
    *DOCS_PAGES,
    *(ROOT / "benchmarks").glob("*.md"),
    *(ROOT / "examples").rglob("*.md"),
    *(ROOT / "cc").rglob("*.md"),
    *(ROOT / "tf_lstm_ops").rglob("*.md"),
]


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# testing.md and the design notes have no examples. build/test_c_api_op.py runs those that need a
# compiler.
COMPILED = DOCS / "guide" / "tensorflow_op.md"
WITH_EXAMPLES = [
    page for page in sorted(DOCS_PAGES) if blocks(text_of(page), "python") and page != COMPILED
]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tables_have_a_header(page: Path) -> None:
    """A blank line ends a table. Rows after it are shown as text."""
    starts = re.findall(r"(?<!\|\n)^(\|.*\n.*\n)", text_of(page), re.MULTILINE)
    assert [rows for rows in starts if not re.search(r"^\|( ?:?-+:? ?\|)+$", rows, re.M)] == []


def test_all_pages_are_found() -> None:
    assert {name_of(page) for page in WITH_EXAMPLES} == {
        *("docs/guide/export.md", "docs/guide/keras.md", "docs/guide/accelerate.md"),
        *("docs/guide/raw_ops.md", "docs/guide/serve_one_step.md", "docs/guide/old_models.md"),
        *("docs/guide/tutorial.md", "docs/guide/weights.md", "docs/guide/other_programs.md"),
        *("docs/guide/other_frameworks.md", "docs/guide/small_weights.md"),
    }


@pytest.mark.full
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples_print_what_they_say(page: Path, tmp_path: Path) -> None:
    if "import torch" in text_of(page):
        pytest.importorskip("torch")
    run_examples(text_of(page), tmp_path)


@pytest.mark.parametrize("page", [*WITH_EXAMPLES, ROOT / "README.md"], ids=name_of)
def test_examples_can_be_pasted(page: Path) -> None:
    """Into the prompt of Python before 3.13."""
    assert [error for block in blocks(text_of(page), "python") if (error := pasted(block))] == []


def test_the_way_of_a_call_exists() -> None:
    """The files and functions from `layer(x)` to the equations, as cc/README.md lists them."""
    section = (
        text_of(ROOT / "cc" / "README.md").partition("## From `layer(x)`")[2].partition("##")[0]
    )
    steps = re.findall(r"`([\w/]+/[\w/]+\.\w+)`, `(\w+)`", section)
    assert len(steps) == section.count("`, `") == 9
    for file, name in steps:
        definition = rf"\b(def|struct|class|void|Outputs) {name}\b"
        assert re.search(definition, text_of(ROOT / file)), (file, name)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(text_of(page)):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors(text_of(target)), link


def test_pages_name_the_python_versions_of_the_package() -> None:
    """Those of pyproject.toml. A page may name the range, or the first one."""
    project = text_of(ROOT / "pyproject.toml")
    [(first, end)] = re.findall(
        r'^requires-python = ">=3\.(\d+),<3\.(\d+)"$', project, re.MULTILINE
    )
    versions = [f"3.{minor}" for minor in range(int(first), int(end))]
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project) == versions
    said = {page: " ".join(text_of(page).split()) for page in PAGES}
    found = {
        (name_of(page), *match)
        for page, text in said.items()
        for match in re.findall(r"Python (3\.\d+)(?: (?:to|-|–) (3\.\d+)| (or newer))", text)
    }
    assert {name for name, *_ in found} >= {"README.md", "docs/guide/tutorial.md"}
    for name, low, high, _ in found:
        assert (low, high or versions[-1]) == (versions[0], versions[-1]), name


def linked_pages(page: Path) -> set[Path]:
    targets = {(page.parent / link.partition("#")[0]).resolve() for link in links(text_of(page))}
    return {target for target in targets if target.suffix == ".md"}


def test_indexes_name_every_page() -> None:
    """README.md names the index of docs. It names the pages and the index for contributors, which
    names the index of the decisions.

    Nothing names docs/index.md: it is the front page of the site.
    """
    reached = {ROOT / "README.md", DOCS / "index.md"}
    folders = (ROOT, DOCS, DOCS / "contributing", DOCS / "decisions")
    for index in (folder / "README.md" for folder in folders):
        assert index in reached, f"{name_of(index)} is not linked"
        reached |= linked_pages(index)
    # The site makes the pages of classes, so a git host does not show them.
    classes = {page for page in DOCS_PAGES if page.parent.parent == DOCS / "api"}
    assert set(DOCS_PAGES) - reached - classes == set()


def test_paths_of_pages_in_code_exist() -> None:
    """As comments, docstrings and messages name them."""
    folders = ("cc", "tf_lstm_ops", "tests", "scripts", "build_defs", ".ci", "examples")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.is_file()]
    suffixes = {".py", ".cc", ".h", ".mm", ".cu", ".c", ".sh", ".toml", ".bzl", ""}
    for file in [*files, ROOT / "pyproject.toml"]:
        if file.suffix not in suffixes or "__pycache__" in file.parts:
            continue
        for path in re.findall(r"\bdocs/[\w/]+\.md", file.read_text(encoding="utf-8")):
            assert (ROOT / path).exists(), f"{name_of(file)} names {path}"


def rows(text: str, first: int) -> list[list[str]]:
    """The cells of a page's only table, from column `first` on."""
    table = [line for line in text.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in row.split("|")[1:-1]][first:] for row in table]


def assert_links_tests(folder: Path, cell: str) -> None:
    """One or more links to tests that exist, with nothing else."""
    link = r"\[[^]]+\]\(((?:\.\./)+tests/.+?\.py)#(test_\w+)\)"
    assert re.fullmatch(rf"{link}(; {link})*", cell), cell
    for file, test in re.findall(link, cell):
        assert re.search(rf"^def {test}\(", text_of(folder / file), re.MULTILINE), cell


def test_interoperability_table_names_tests() -> None:
    """In the columns of exactness and of what is lost."""
    table = rows(text_of(DOCS / "interoperability.md"), 3)
    assert len(table) > 10
    for row in table:
        assert len(row) == 2
        for cell in row:
            assert_links_tests(DOCS, cell)


def test_call_path_of_the_cpu_engine_names_functions_of_its_files() -> None:
    page = text_of(ROOT / "cc/backends/cpu/README.md")
    path = re.findall(r"^\| `([\w:]+)` \| `(\S+)` \|", page, re.MULTILINE)
    assert len(path) == 15
    for function, file in path:
        source = text_of(ROOT / "cc" / file)
        *classes, name = function.split("::")
        assert re.search(rf"\b{name}\(", source), (function, file)
        assert all(re.search(rf"(class|struct) {c}\b", source) for c in classes), (function, file)
