"""The page of options is what its script prints."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_of_targets() -> None:
    file = ROOT / "scripts" / "options_page.py"
    spec = importlib.util.spec_from_file_location("targets", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "reference" / "targets.md").read_text("utf-8")
    assert page == module.page(), "run python scripts/options_page.py > docs/reference/targets.md"
