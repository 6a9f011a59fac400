"""What a package index shows: README.md as it renders it, and links that leave it."""

import json
import os
import re
import subprocess
import sys
from typing import NamedTuple

from readme_renderer import markdown

from pages import ROOT

ADDRESS = "https://host.example/owner/name"
VARIABLES = ("TF_LSTM_OPS_REPOSITORY_URL", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY")
PROGRAM = """
import json
from pathlib import Path
from build_defs import long_description
text = long_description.long_description(Path("README.md").read_text(encoding="utf-8"))
print(json.dumps([text, long_description.project_urls()]))
"""


class Shown(NamedTuple):
    """What an index shows."""

    html: str
    urls: dict[str, str]

    @property
    def targets(self) -> list[str]:
        return re.findall(r'(?:href|src)="([^"#][^"]*)"', self.html)


def render(text: str) -> str:
    html = markdown.render(text)
    assert html is not None
    return html


def shown(**environment: str) -> Shown:
    """In a process of its own: setup.py finds its helpers in the checkout, tests do not."""
    others = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    command = [sys.executable, "-c", PROGRAM]
    printed = subprocess.check_output(command, cwd=ROOT, env={**others, **environment})
    text, urls = json.loads(printed)
    return Shown(render(text), urls)


def test_readme_itself_has_relative_links():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert any(target.startswith("docs/") for target in Shown(render(readme), {}).targets)


def test_links_are_absolute():
    found = shown(TF_LSTM_OPS_REPOSITORY_URL=f"{ADDRESS}/")
    assert f"{ADDRESS}/blob/main/docs/guide/tutorial.md" in found.targets
    assert f"{ADDRESS}/raw/main/benchmarks/speed-light.svg" in found.targets
    for target in found.targets:
        match = re.fullmatch(rf"{ADDRESS}/(?:blob|raw)/main/([^#]*)(?:#.*)?", target)
        assert match and (ROOT / match[1]).exists(), target
    assert found.urls["Source"] == ADDRESS


def test_the_repository_of_a_workflow():
    found = shown(GITHUB_SERVER_URL="https://host.example", GITHUB_REPOSITORY="owner/name")
    assert f"{ADDRESS}/blob/main/LICENSE" in found.targets


def test_no_links_without_an_address():
    found = shown()
    assert found.targets == []
    assert "<img" not in found.html and "plot" not in found.html
    assert "What TensorFlow, Keras and PyTorch lack" in found.html  # what follows the plot
    assert found.urls == {}
