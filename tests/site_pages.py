"""What tests read from the HTML pages of the documentation site."""

import re
from html.parser import HTMLParser
from pathlib import Path


class Page(HTMLParser):
    """The links, anchors and resources of a page.

    Attributes:
      text: the HTML.
      ids: the names of all anchors.
      links: the targets of the links.
      resources: the addresses of scripts, styles, images and fonts.
      tags: the names of all elements, in order.
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.text = file.read_text(encoding="utf-8")
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.resources: list[str] = []
        self.tags: list[str] = []
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for each element."""
        values = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.resources += [values["src"]] if "src" in values else []
        if tag == "link":
            self.resources.append(values["href"])

    def described(self, name: str) -> str:
        """The HTML that describes a Python object, up to the next one; "" if there is none."""
        _, _, after = self.text.partition(f'<dt class="sig sig-object py" id="{name}">')
        return re.split('<dt class="sig sig-object py"', after)[0]


def sidebar(page: Page) -> dict[str, list[tuple[int, str]]]:
    """The level and the target of each link, by caption."""
    tree = page.text.partition('class="sidebar-tree"')[2].partition("</aside>")[0]
    _, *groups = tree.split('<span class="caption-text">')
    link = r'<li class="toctree-l(\d)[^"]*">\s*<a class="[^"]*" href="([^"]*)"'
    return {
        group.partition("<")[0]: [(int(level), path) for level, path in re.findall(link, group)]
        for group in groups
    }
