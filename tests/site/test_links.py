"""docs/_ext/repository_pages.py: where the links of a page lead, and its pictures."""

import pytest
from repository_pages import page_of, rewritten, source_of

pytestmark = pytest.mark.site


def address(path: str) -> str:
    return f"https://example.org/blob/main/{path}"


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
    assert rewritten(f"See {link}.", source, address) == f"See {target}."


@pytest.mark.parametrize(
    "code", ["`a[0](setup.py)`", "``a`[0](setup.py)``", "```python\na[0](setup.py)\n```"]
)
def test_code_is_unchanged(code: str) -> None:
    text = f"x\n{code}\n"
    assert rewritten(text, "docs/testing.md", address) == text


@pytest.mark.parametrize(
    ("link", "text"),
    [
        ("[yes](../tests/pages.py#links)", "yes"),
        ("[pages.py](../tests/pages.py)", "`pages.py`"),
        ("[`pages.py`](../tests/pages.py)", "`pages.py`"),
    ],
)
def test_text_remains_without_an_address(link: str, text: str) -> None:
    assert rewritten(link, "docs/testing.md", lambda path: None) == text


def test_picture_becomes_an_image_for_each_theme() -> None:
    source = '<source media="(prefers-color-scheme: dark)" srcset="a/x-dark.svg">'
    picture = f'<picture>\n  {source}\n  <img src="a/x.svg" width="7" alt="An\n  x: y">\n</picture>'
    images = [
        f'```{{image}} /../a/{file}.svg\n:class: only-{theme}\n:alt: "An x: y"\n```\n'
        for file, theme in (("x", "light"), ("x-dark", "dark"))
    ]
    assert rewritten(picture, "README.md", address) == "\n".join(images)


@pytest.mark.parametrize("source", ["docs/guide/keras.md", "cc/backends/cpu/README.md"])
def test_source_of_a_page(source: str) -> None:
    page = page_of(source)
    assert page is not None and source_of(page) == source


@pytest.mark.parametrize(
    "source", ["docs/conf.py", "docs/api/missing.rst", "tf_lstm_ops/data/README.md"]
)
def test_other_files_are_no_pages(source: str) -> None:
    assert page_of(source) is None
