"""README.md as the long description of the package: an index shows it far from the repository."""

from __future__ import annotations

import re

from build_defs.project_url import file_url, repository_url

_LINK = re.compile(r"\[([^\]]*)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?\)")
_PICTURE = re.compile(r"<picture>.*?</picture>\n+", re.DOTALL)
_IMAGE = re.compile(r'((?:src|srcset)=")(?![a-z]+:)([^"]+)')


def long_description(readme: str) -> str:
    """Makes all links and images absolute.

    Args:
      readme: the text of README.md.

    Returns:
      The text for the index. Where no address of the repository is known, links are replaced by
      their text, and the plot is left out.
    """
    root = repository_url()
    if root is None:
        return _LINK.sub(r"\1", _PICTURE.sub("", readme))
    absolute = _LINK.sub(lambda m: f"[{m[1]}]({file_url(m[2])}{m[3] or ''})", readme)
    return _IMAGE.sub(rf"\1{root}/raw/main/\2", absolute)


def project_urls() -> dict[str, str]:
    """The links of the package's metadata; none where no address is known."""
    root = repository_url()
    if root is None:
        return {}
    return {
        "Homepage": root,
        "Documentation": f"{root}/blob/main/docs/README.md",
        "Changelog": f"{root}/blob/main/CHANGELOG.md",
        "Issues": f"{root}/issues",
        "Source": root,
    }
