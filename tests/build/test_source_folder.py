"""The source folder of a checkout, whose package has no native library."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

IMPORT = "import tf_lstm_ops; print(tf_lstm_ops.__file__)"


@pytest.fixture
def source(root, tmp_path) -> Path:
    """A folder with the package's Python files."""
    folder = tmp_path / "source"
    shutil.copytree(
        root / "tf_lstm_ops",
        folder / "tf_lstm_ops",
        ignore=shutil.ignore_patterns("_lib", "__pycache__"),
    )
    return folder


def run(*folders: Path) -> subprocess.CompletedProcess[str]:
    """Imports the package with only `folders` and the standard library on sys.path."""
    others = {k: v for k, v in os.environ.items() if k != "TF_LSTM_OPS_LIBRARY"}
    return subprocess.run(
        [sys.executable, "-S", "-c", IMPORT],
        env={**others, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        cwd="/",
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("again", ["copy", "link", None])
def test_no_package_has_the_library(source, tmp_path, again):
    """A second source folder, or a link to the first one, is no installed package."""
    folders = [source]
    if again:
        folders.append(tmp_path / again)
    if again == "copy":
        shutil.copytree(source, folders[1])
    if again == "link":
        folders[1].mkdir()
        (folders[1] / "tf_lstm_ops").symlink_to(source / "tf_lstm_ops")
    result = run(*folders)
    assert result.returncode == 1
    error = result.stderr.splitlines()[-1]
    assert error.startswith("ImportError: tf_lstm_ops is imported from its source folder")
    assert "Run 'pip install .'" in error


def test_the_package_with_the_library_is_imported(source, tmp_path):
    """A stand-in for the installed package, behind two source folders."""
    copy, installed = tmp_path / "copy", tmp_path / "installed" / "tf_lstm_ops"
    shutil.copytree(source, copy)
    (installed / "_lib").mkdir(parents=True)
    (installed / "__init__.py").write_text("")
    (installed / "_lib" / "tf_lstm_ops.so").write_text("")
    result = run(source, copy, installed.parent)
    assert result.returncode == 0, result.stderr
    assert Path(result.stdout.strip()) == installed / "__init__.py"
