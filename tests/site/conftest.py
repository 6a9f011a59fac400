"""Builds the documentation site once. SITE_FOLDER names a folder to keep it in."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from site_pages import Page

ROOT = Path(__file__).resolve().parents[2]
# Other tests run without docs/requirements.txt.
collect_ignore_glob = [] if importlib.util.find_spec("sphinx") else ["test_*.py"]
sys.path += [str(ROOT / "docs" / "_ext"), str(ROOT / "build_defs")]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site, built without a warning. It does not know the repository's address
    unless the environment gives it."""
    work = tmp_path_factory.mktemp("site")
    built = Path(os.environ.get("SITE_FOLDER", work / "html")).resolve()
    options = ["-W", "--keep-going", "-q", "-E", "-d", work / "doctrees"]
    command = [sys.executable, "-m", "sphinx", *options, ROOT / "docs", built]
    # Not in ROOT, where Python would find the source folder of the package first.
    result = subprocess.run(command, capture_output=True, text=True, cwd=work)
    assert result.returncode == 0, result.stderr
    return built


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[str, Page]:
    """The pages of the site by their paths."""
    found = {file.relative_to(site).as_posix(): Page(file) for file in site.rglob("*.html")}
    return {path: page for path, page in found.items() if not path.startswith("_")}
