"""Every command line and every other block of the documentation is run, here or elsewhere.

test_pages.py, test_readme.py and build/test_c_api_op.py run the Python blocks and compare those
marked `output`, tests/site converts the equations. commands.py names what runs the rest.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import keras
import pytest

import tf_lstm_ops
from pages import ROOT, blocks, run_examples
from peers import command
from tf_lstm_ops import __main__
from tf_lstm_ops._capacity import Capacity
from tf_lstm_ops.cli import doctor_timing

from .commands import COMMANDS, TEXTS, By, Run, RunOnPage

DOCS = ROOT / "docs"
FILES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
PAGES = {  # docs/project has copies of other pages
    file.relative_to(ROOT).as_posix(): file.read_text(encoding="utf-8")
    for file in FILES
    if not file.is_relative_to(DOCS / "project")
}


def lines(page: str) -> list[str]:
    """The command lines of a page: without comments, continued lines joined."""
    text = "".join(blocks(page, "sh") + re.findall(r"^\$ (.*\n)", page, re.MULTILINE))
    found = (re.sub(r"\s+#.*", "", line) for line in re.sub(r"\\\n\s*", "", text).splitlines())
    return [line.strip() for line in found if line.strip()]


def is_run(line: str) -> bool:
    """Whether test_commands runs it."""
    return isinstance(COMMANDS.get(line), Run)


WITH_COMMANDS = [name for name, page in PAGES.items() if any(map(is_run, lines(page)))]


def languages(page: str) -> list[str]:
    """Of all fenced blocks, indented ones too, in order; "" without one."""
    return re.findall(r"^ *```+(.*)$", page, re.MULTILINE)[::2]


def assert_checks(by: By, text: str) -> None:
    """The file and the function exist, and the words stand in the text and in the file."""
    source = (ROOT / by.file).read_text(encoding="utf-8")
    assert by.function or by.words
    if by.function:
        assert re.search(rf"^(def )?{by.function}\(", source, re.MULTILINE), by
    for word in by.words:
        assert word in text and word in source, by


def test_every_command_is_in_the_table() -> None:
    assert {line for page in PAGES.values() for line in lines(page)} == set(COMMANDS)


@pytest.mark.parametrize("line", [line for line, how in COMMANDS.items() if isinstance(how, By)])
def test_what_runs_the_others_exists(line: str) -> None:
    assert_checks(COMMANDS[line], line)


def test_every_block_is_checked() -> None:
    elsewhere = {"python", "sh", "math", "{include}", "{literalinclude}", "{toctree}", "{eval-rst}"}
    tags = Counter((name, tag) for name, page in PAGES.items() for tag in languages(page))
    found = {key: n for key, n in tags.items() if key[1].partition(" ")[0] not in elsewhere}
    printed = {name for name, tag in found if tag == "output"}
    assert printed <= {name for name, page in PAGES.items() if blocks(page, "python")}
    assert not blocks(PAGES["CONTRIBUTING.md"], "python")  # test_pages.py runs those below docs
    rest = {key: n for key, n in found.items() if key[1] != "output"}
    assert rest == {key: len(checks) for key, checks in TEXTS.items()}
    for (name, _), checks in TEXTS.items():
        for by in checks:
            assert_checks(by, PAGES[name])


def test_folders_exist() -> None:
    """Those that CONTRIBUTING.md lists."""
    [listed] = blocks(PAGES["CONTRIBUTING.md"], "text")
    folders = [line.split()[0] for line in listed.splitlines()]
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []


def test_extras_and_the_wheel_exist() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    text = "\n".join(COMMANDS)
    for extra in re.findall(r"\[([\w-]+)\]'", text):
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra
    assert set(re.findall(r"tf_lstm_ops-([\d.]+)-", text)) == {tf_lstm_ops.__version__}


class Parsed(Exception):
    """The arguments were right."""


@pytest.mark.parametrize(
    ("pattern", "main", "least"),
    [
        (r"tf-lstm-ops ((?:info|doctor|convert|demo|selftest) [^`>)\n]+)", __main__.main, 3),
        (r"benchmarks/peers (-[^`>\n]+)", command.main, 5),
    ],
    ids=["tf-lstm-ops", "benchmarks/peers"],
)
def test_arguments_are_right(
    monkeypatch: pytest.MonkeyPatch, pattern: str, main: Callable[[list[str]], int], least: int
) -> None:
    """In all blocks, and in code quotes; the name of a command alone has no arguments."""
    parse = argparse.ArgumentParser.parse_args

    def stop(parser: argparse.ArgumentParser, arguments: list[str]) -> None:
        parse(parser, arguments)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", stop)
    found = {match for page in PAGES.values() for match in re.findall(pattern, page)}
    assert len(found) > least
    for arguments in found:
        with pytest.raises(Parsed):
            main(shlex.split(arguments, comments=True))


def shell(command: str, folder: Path, work: Path) -> None:
    """Runs it in `work`, with this Python and its programs, and `folder` as the home folder."""
    programs = {"python": "", "tf-lstm-ops": "-m tf_lstm_ops", "pytest": "-m pytest"}
    programs["saved_model_cli"] = "-m tensorflow.python.tools.saved_model_cli"
    (folder / "bin").mkdir(exist_ok=True)
    for name, module in programs.items():
        program = folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {module} "$@"\n')
        program.chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    options = "-n 0 -q --collect-only -p no:cacheprovider"
    env = {**os.environ, "PATH": path, "HOME": str(folder), "PYTEST_ADDOPTS": options}
    command = command.replace(".venv/bin/", "")
    done = subprocess.run(["sh", "-ec", command], cwd=work, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full  # each process imports TensorFlow
@pytest.mark.parametrize("page", WITH_COMMANDS)
def test_commands(page: str, tmp_path: Path) -> None:
    """In the order of the page, because some need what the ones above have made."""
    for line in filter(is_run, lines(PAGES[page])):
        how = COMMANDS[line]
        shell(line.replace(*how) if how.old else line, tmp_path, ROOT)


@pytest.mark.full
def test_commands_that_read_files_of_the_examples(tmp_path: Path) -> None:
    page = PAGES["docs/guide/export.md"]
    run_examples(f'{page}\n```python\nnp.save("sequences.npy", sequences)\n```\n', tmp_path)
    for line in lines(page):
        assert isinstance(COMMANDS[line], RunOnPage)
        shell(line, tmp_path, tmp_path)
    assert list((tmp_path / "predictions").iterdir())
    assert (tmp_path / "model.onnx").stat().st_size > 0


@pytest.mark.full  # it times the layers
def test_doctor_prints_what_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the times."""
    command, _, shown = blocks(PAGES["docs/guide/keras.md"], "text")[0].partition("\n")
    arguments = [*shlex.split(command)[2:], "--no-exports"]
    layer = keras.layers.LSTM(64, return_sequences=True, name="stock_lstm")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(doctor_timing, "capacity", lambda: Capacity(2, 1.0))  # busy
    keras.Sequential([keras.Input((None, 16)), layer], name="tagger").save(arguments[1])
    assert __main__.main(arguments) == 1
    number = r"\d+(\.\d+)?(e\+\d+)?"
    # All lines up to the empty line before the environment.
    assert f"{re.sub(number, '#', shown)}\n" in re.sub(number, "#", capsys.readouterr().out)
