"""docs/_ext/repository_pages.py: where the links of a page lead, and its pictures."""

import re

import pytest
from repository_pages import page_of, rewritten, source_of
from sphinx.errors import ExtensionError

from pages import ROOT

pytestmark = pytest.mark.site


def address(path: str) -> str:
    return f"https://example.org/blob/main/{path}"


def no_address(path: str) -> None:
    return None


@pytest.mark.parametrize(
    ("source", "link", "target"),
    [
        ("docs/guide/keras.md", "[a](weights.md)", "[a](/guide/weights.md)"),
        ("docs/guide/keras.md", "[a](../testing.md#marks)", "[a](/testing.md#marks)"),
        ("docs/guide/keras.md", "[a](#masks)", "[a](#masks)"),
        ("docs/guide/keras.md", "[a](https://keras.io)", "[a](https://keras.io)"),
        ("docs/index.md", "[a](api/keras.rst)", "[a](/api/keras.rst)"),
        ("docs/testing.md", "[a](../CONTRIBUTING.md)", "[a](/project/CONTRIBUTING.md)"),
        ("CONTRIBUTING.md", "[a](docs/testing.md)", "[a](/testing.md)"),
        ("CONTRIBUTING.md", "[a](README.md)", "[a](/index.md)"),
        ("cc/README.md", "[a](../SECURITY.md)", "[a](/project/SECURITY.md)"),
        ("CONTRIBUTING.md", "[a](LICENSE)", f"[a]({address('LICENSE')})"),
        ("cc/README.md", "[a](core/cells.h)", f"[a]({address('cc/core/cells.h')})"),
        (
            "docs/testing.md",
            "[two\nlines](../tests/pages.py#links)",
            f"[two\nlines]({address('tests/pages.py')}#links)",
        ),
        (
            "docs/testing.md",
            "[`code` [x]](../setup.py); [b](README.md)",
            f"[`code` [x]]({address('setup.py')}); [b](/README.md)",
        ),
    ],
)
def test_link(source: str, link: str, target: str) -> None:
    assert rewritten(f"See {link}.", source, address, no_address) == f"See {target}."


@pytest.mark.parametrize(
    "code", ["`a[0](setup.py)`", "``a`[0](setup.py)``", "```python\na[0](setup.py)\n```"]
)
def test_code_is_unchanged(code: str) -> None:
    text = f"x\n{code}\n"
    assert rewritten(text, "docs/testing.md", address, no_address) == text


@pytest.mark.parametrize(
    ("link", "html"),
    [
        (
            "[yes](../tests/pages.py#links)",
            '<a class="reference" href="{}#:~:text=def%20links(">yes</a>',
        ),
        ("[`pages.py`](../tests/pages.py)", '<a class="reference" href="{}">`pages.py`</a>'),
    ],
)
def test_link_leads_to_a_copy_without_an_address(link: str, html: str) -> None:
    copy = "copies/{}.txt".format
    expected = html.format(copy("tests/pages.py"))
    assert rewritten(link, "docs/testing.md", no_address, copy) == expected


@pytest.mark.parametrize(
    ("link", "text"), [("[the tests](../tests)", "the tests"), ("[tests](../tests)", "`tests`")]
)
def test_text_of_a_folder_remains_without_an_address(link: str, text: str) -> None:
    assert rewritten(link, "docs/testing.md", no_address, no_address) == text


SOURCE = '<source media="(prefers-color-scheme: dark)" srcset="a/x-dark.svg">'
IMAGE = '<img src="a/x.svg" width="7" alt="An x: y">'


BROKEN = (
    '<source\n  media="(prefers-color-scheme: dark)"\n  srcset="a/x-dark.svg">',
    '<img\n  src="a/x.svg"\n  width="7"\n  alt="An\n  x: y">',
)


@pytest.mark.parametrize(
    "picture",
    [
        f"<picture>\n  {SOURCE}\n  {IMAGE}\n</picture>",
        f"<picture>{SOURCE}{IMAGE}</picture>",
        "<picture>\n{}\n{}\n</picture>".format(*BROKEN),
        f"<picture >{SOURCE.replace('>', ' />')}{IMAGE.replace('>', '/>')}</picture >",
    ],
)
def test_picture_becomes_an_image_for_each_theme(picture: str) -> None:
    images = [
        f'```{{image}} /../a/{file}.svg\n:class: only-{theme}\n:width: 7px\n:alt: "An x: y"\n```\n'
        for file, theme in (("x", "light"), ("x-dark", "dark"))
    ]
    assert rewritten(picture, "README.md", address, no_address) == "\n".join(images)


@pytest.mark.parametrize(
    "picture",
    [
        f"<picture>{IMAGE}</picture>",
        f"<picture>{SOURCE}<img src='a/x.svg' width='7' alt='y'></picture>",
        f'<picture class="wide">{SOURCE}{IMAGE}</picture>',
        f"<PICTURE>{SOURCE}</PICTURE>",
    ],
)
def test_another_picture_is_an_error(picture: str) -> None:
    with pytest.raises(ExtensionError, match=r"^README.md: a <picture> must have"):
        rewritten(f"See\n{picture}\n", "README.md", address, no_address)


def test_pictures_of_all_pages_become_images() -> None:
    """Without a build: of the files that have an element at the start of a line."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "cc").rglob("*.md")]
    count = 0
    for page in pages:
        source, text = page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8")
        images = rewritten(text, source, address, no_address).count("\n:class: only-light\n")
        assert images == len(re.findall("^<picture", text, re.MULTILINE)), source
        count += images
    assert count >= 5


@pytest.mark.parametrize("source", ["docs/guide/keras.md", "cc/backends/cpu/README.md"])
def test_source_of_a_page(source: str) -> None:
    page = page_of(source)
    assert page is not None and source_of(page) == source


@pytest.mark.parametrize(
    "source", ["docs/conf.py", "docs/api/missing.rst", "tf_lstm_ops/data/README.md"]
)
def test_other_files_are_no_pages(source: str) -> None:
    assert page_of(source) is None
