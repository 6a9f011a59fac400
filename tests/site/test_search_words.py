"""docs/_ext/search_words.py: where words lead, without a browser. test_browser.py searches."""

import json
import re
from pathlib import Path

import pytest
from search_words import WORDS, with_words
from sphinx.errors import ExtensionError

pytestmark = pytest.mark.site


@pytest.fixture(scope="module")
def index(site: Path) -> dict[str, object]:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    return json.loads(re.fullmatch(r"Search\.setIndex\((.*)\)", text, re.DOTALL)[1])


def test_words_are_in_the_index(index: dict[str, object]) -> None:
    for page, sections in WORDS.items():
        for words in sections.values():
            for word in words:
                found = index["indexentries"][word.lower()]
                assert page in [
                    index["docnames"][number] for number, _, is_main in found if is_main
                ]


def test_decisions_and_logs_have_no_words(index: dict[str, object]) -> None:
    names = ("decisions/README", "project/benchmarks/NOTES")
    hidden = {number for number, name in enumerate(index["docnames"]) if name.startswith(names)}
    assert len(hidden) == 2
    for numbers in index["terms"].values():
        assert not hidden & {*(numbers if isinstance(numbers, list) else [numbers])}


def test_entries_stand_behind_the_heading() -> None:
    text = with_words("# A\n\n## B\n\nText.\n", {"B": ("c", "d e")}, "page")
    assert text == "# A\n\n## B\n\n```{index} ! c, ! d e\n```\n\nText.\n"


def test_a_heading_that_is_gone_is_an_error() -> None:
    with pytest.raises(ExtensionError, match="page has 0 headings 'B'"):
        with_words("# A\n", {"B": ("c",)}, "page")
