"""What README, guides and examples tell to install works in an environment with nothing in it.

The environments are those that `python -m venv` makes, of each Python of the machine: older ones
bring setuptools, newer ones do not. TF_LSTM_OPS_TEST_PYTHONS may name some, as in "3.12 3.13".
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT, blocks

from .installs import CHAINS, INSTEAD, NEW, OTHERS, Chain

PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
INSTALL = re.compile(r"\bpip3? (install|wheel|download)\b|-m (venv|pip)\b|\b(apt|conda|uv) ")
VERSIONS = [f"3.{minor}" for minor in range(10, 15)]
SESSION = """
import numpy as np
from tf_lstm_ops.inference import Session, layers
arrays = [np.ones(shape, "f") for shape in ((3, 16), (4, 16), (16,))]
print(Session.from_layers([layers.LSTM(arrays)])(np.ones((1, 5, 3), "f")).shape)
"""
OPS = "import tf_lstm_ops.keras"


def found() -> dict[str, list[str]]:
    """By page and place the lines of each block that installs something, and each such command in
    the text."""
    commands = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        name = page.relative_to(ROOT).as_posix()
        for block in blocks(text, "sh"):
            if INSTALL.search(block):
                commands[f"{name}: {block}"] = block.replace("\\\n", "").splitlines()
        outside = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
        for quoted in re.findall(r"`([^`]+)`", outside):
            if INSTALL.search(quoted):
                commands[f"{name}: {quoted}"] = [" ".join(quoted.split())]
    return commands


def test_every_command_is_in_a_chain() -> None:
    """With the lines of its block behind one another, so that they run in the same order."""
    texts = ["\n".join(["", *chain.commands, ""]) for chain in CHAINS.values()]
    missing = [
        where
        for where, lines in found().items()
        if lines[0] not in OTHERS and not any("\n".join(["", *lines, ""]) in t for t in texts)
    ]
    assert missing == []


def test_every_command_stands_on_a_page() -> None:
    """So that the tables do not keep what was deleted."""
    lines = {line for block in found().values() for line in block}
    assert {line for chain in CHAINS.values() for line in chain.commands} - lines == set()
    assert set(OTHERS) - lines == set()
    text = "\n".join("\n".join(chain.commands) for chain in CHAINS.values())
    assert [old for old in INSTEAD if old not in text] == []


def pythons() -> dict[str, str]:
    """Interpreters that can make an environment, by version."""
    installed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    made = {}
    for version in os.environ.get("TF_LSTM_OPS_TEST_PYTHONS", " ".join(VERSIONS)).split():
        places = [*installed.glob(f"{version}.*/bin/python"), shutil.which(f"python{version}")]
        if sys.version_info[:2] == tuple(map(int, version.split("."))):
            places.insert(0, sys.executable)
        for place in filter(None, places):
            check = [place, "-c", "import ensurepip, sys; assert '%d.%d' % sys.version_info[:2]"]
            check[-1] += f" == '{version}'"
            if subprocess.run(check, capture_output=True).returncode == 0:
                made.setdefault(version, str(place))
    return made


def script(chain: Chain) -> str:
    lines = "\n".join([NEW, *chain.commands] if chain.is_in_environment else chain.commands)
    for old, new in INSTEAD.items():
        lines = lines.replace(old, new)
    return lines


class Machine:
    """A copy of the repository, and a search path with no package's program, but a Python."""

    def __init__(self, folder: Path, python: str) -> None:
        left_out = (".git", ".venv", ".build", "_lib", "include", "*.egg-info", "__pycache__")
        self.clone = folder / "clone"
        shutil.copytree(ROOT, self.clone, ignore=shutil.ignore_patterns(*left_out), symlinks=True)
        shutil.copytree(ROOT / "include", self.clone / "include")
        tools = folder / "tools"
        tools.mkdir()
        for name in ("python3", "python"):
            (tools / name).write_text(f'#!/bin/sh\nexec "{python}" "$@"\n')
            (tools / name).chmod(0o755)
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        self.environment = {**kept, "PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin"}
        if shutil.which("ccache"):  # only the first of these many builds takes minutes
            self.environment.setdefault("CXX", "ccache c++")

    def run(self, lines: str, folder: str = ".") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-ec", lines],
            cwd=self.clone / folder,
            env=self.environment,
            capture_output=True,
            text=True,
        )


@pytest.mark.slow
@pytest.mark.downloads("TensorFlow, and what the pages install")
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("version", VERSIONS)
def test_commands_in_a_bare_environment(version: str, name: str, tmp_path: Path) -> None:
    if version not in (made := pythons()):
        pytest.skip(f"no Python {version}")
    machine = Machine(tmp_path, made[version])
    done = machine.run(script(CHAINS[name]), CHAINS[name].folder)
    shutil.rmtree(tmp_path / "my_op", ignore_errors=True)  # a TensorFlow has two gigabytes
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    if name == "sessions":
        check_sessions_only(machine)
    shutil.rmtree(machine.clone)


def check_sessions_only(machine: Machine) -> None:
    """NumPy suffices for sessions; the rest says how to get it; a frozen program runs."""
    python = machine.clone / ".venv" / "bin" / "python"
    folder = machine.clone.parent / "elsewhere"
    folder.mkdir()
    (folder / "session.py").write_text(SESSION)
    listed = machine.run(f"{python} -m pip list --format freeze").stdout.split()
    packages = {line.partition("==")[0] for line in listed}
    assert packages - {"pip", "setuptools"} == {"numpy", "tf_lstm_ops"}
    done = machine.run(f"{python} session.py", str(folder))
    assert done.stdout == "(1, 4)\n", done.stderr
    done = machine.run(f"{python} -c '{OPS}'", str(folder))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: this installation of tf_lstm_ops has sessions only")
    assert "run 'pip install .' without that variable" in last
    printed = machine.run(f"{python} -m tf_lstm_ops info", str(folder)).stdout
    assert "built with" in printed and "sessions only" in printed
    frozen = "-m PyInstaller --noconfirm --log-level ERROR session.py && dist/session/session"
    done = machine.run(f"{python} -m pip install pyinstaller && {python} {frozen}", str(folder))
    assert done.stdout.splitlines()[-1] == "(1, 4)", done.stderr
