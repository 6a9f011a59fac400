"""The installed package: complete, platform-specific, and not the checkout's source folder."""

import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import pytest

import tf_lstm_ops

DISTRIBUTION = "tf_lstm_ops"
ORIGIN = json.loads(
    importlib.metadata.distribution(DISTRIBUTION).read_text("direct_url.json") or "{}"
)
COMMANDS = [
    "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/tf-lstm-ops demo",
    "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest",
]

pytestmark = pytest.mark.skipif(
    ORIGIN.get("dir_info", {}).get("editable", False), reason="an editable installation"
)


def test_the_tested_package_is_the_installed_one(root):
    package = Path(tf_lstm_ops.__file__).resolve().parent
    assert package != root / "tf_lstm_ops"
    assert str(root) not in sys.path


def test_version():
    assert importlib.metadata.version(DISTRIBUTION) == tf_lstm_ops.__version__


def test_any_python_one_platform():
    wheel = importlib.metadata.distribution(DISTRIBUTION).read_text("WHEEL")
    assert "Root-Is-Purelib: false" in wheel
    [tag] = [line for line in wheel.splitlines() if line.startswith("Tag: ")]
    assert tag.startswith("Tag: py3-none-") and not tag.endswith("-any")


def test_every_file_of_the_package_is_installed(root):
    installed = {str(file) for file in importlib.metadata.files(DISTRIBUTION)}
    package = root / "tf_lstm_ops"
    sources = {
        file.relative_to(root).as_posix()
        for file in package.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts and file.suffix not in (".a", ".so")
    }
    assert {"tf_lstm_ops/py.typed", "tf_lstm_ops/__main__.py"} <= sources
    assert sources - installed == set()
    assert "tf_lstm_ops/_lib/tf_lstm_ops.so" in installed
    assert "tf_lstm_ops/include/tf_lstm_ops.h" in installed


def test_console_script():
    [script] = importlib.metadata.entry_points(group="console_scripts", name="tf-lstm-ops")
    assert callable(script.load())


@pytest.mark.parametrize("command", COMMANDS)
def test_readme_gives_the_commands(root, command):
    assert command in (root / "README.md").read_text().splitlines()


@pytest.mark.full
def test_source_folder_does_not_hide_the_installed_package(root):
    """``python -c`` puts the current folder first on sys.path."""
    program = "import tf_lstm_ops; print(tf_lstm_ops.__file__)"
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert Path(result.stdout.strip()) == Path(tf_lstm_ops.__file__)
