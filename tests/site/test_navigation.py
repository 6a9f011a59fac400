"""The sidebar and the front page: a door for users and one for contributors."""

import posixpath
import re

import pytest
import repository_pages

from site_pages import Page, sidebar

pytestmark = pytest.mark.site

CONTRIBUTORS = "contributing/README.html"


def test_users_come_first_and_contributors_have_one_group(pages: dict[str, Page]) -> None:
    groups = sidebar(pages["index.html"])
    assert [*groups] == ["Start", "Guides", "API", "Reference", "Contributors"]
    (level, landing), *others = groups.pop("Contributors")
    assert (level, landing) == (1, CONTRIBUTORS)
    assert min(level for level, _ in others) == 2  # furo hides them until the group is opened
    shown = {path for group in groups.values() for _, path in group}
    assert {"guide/choose.html", "guide/export_problems.html", "stability.html"} <= shown
    assert shown & {path for _, path in others} == set()
    folders = ("decisions/", "design/", "contributing/", "project/cc/")
    assert [path for path in shown if path.startswith(folders)] == []


def test_every_page_is_in_the_sidebar(pages: dict[str, Page]) -> None:
    reached = {path for group in sidebar(pages["index.html"]).values() for _, path in group}
    assert set(pages) - reached == {"index.html", "search.html"}


def test_landing_page_links_its_group(pages: dict[str, Page]) -> None:
    """The table that a git host shows has the pages of the toctree."""
    article = pages[CONTRIBUTORS].text.partition("<article")[2].partition("</article>")[0]
    links = re.findall(r'href="([^"#]+\.html)"', article)
    linked = {posixpath.normpath(posixpath.join("contributing", link)) for link in links}
    group = {path for level, path in sidebar(pages["index.html"])["Contributors"] if level == 2}
    assert group == linked - {"README.html"}
    assert len(group) >= len(repository_pages.CHILDREN["contributing/README"])


def test_front_page_shows_both_doors(pages: dict[str, Page]) -> None:
    headings = re.findall(r"<h2>([^<]+)<", pages["index.html"].text)
    assert headings.index("For users") < headings.index("For contributors")
