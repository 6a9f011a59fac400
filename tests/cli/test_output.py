"""Help with examples, JSON alone on stdout, progress on a terminal only."""

import os
import re
import sys

import pytest

from tf_lstm_ops import __main__
from tf_lstm_ops.cli import output

COMMANDS = ("info", "run", "doctor", "convert", "demo", "selftest")
WITH_JSON = ("info", "doctor", "selftest")


def help_of(*command: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        __main__.main([*command, "--help"])
    assert exit_.value.code == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_help_ends_with_examples(command: str, capsys) -> None:
    help_of(command)
    text, _, examples = capsys.readouterr().out.partition("\nexamples:\n")
    lines = examples.splitlines()
    assert lines
    assert all(line.startswith(f"  tf-lstm-ops {command}") for line in lines)
    assert ("--json" in text) == (command in WITH_JSON)


def test_help_of_the_program(capsys) -> None:
    help_of()
    text, _, examples = capsys.readouterr().out.partition("\nexamples:\n")
    assert examples.startswith("  tf-lstm-ops run train.py\n")
    for command in COMMANDS:
        assert re.search(rf"^    {command}\s", text, re.MULTILINE)


@pytest.mark.parametrize("command", ["doctor", "demo"])
def test_defaults_are_in_the_help_of_options_with_values(command: str, capsys) -> None:
    help_of(command)
    text = " ".join(capsys.readouterr().out.split())
    assert "(default: 32)" in text or "(default: 30)" in text
    assert "(default: False)" not in text


@pytest.mark.parametrize(
    ("is_terminal", "wanted", "out", "err"),
    [
        (False, False, "text\n", ""),
        (True, False, "text\n", ""),
        (False, True, "", ""),
        (True, True, "", "text\n"),
    ],
)
def test_json_only(monkeypatch, capsys, is_terminal: bool, wanted: bool, out: str, err: str):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    with output.json_only(wanted):
        print("text")
    assert capsys.readouterr() == (out, err)
    print("after")
    assert capsys.readouterr().out == "after\n"


def test_json_has_no_nan(capsys) -> None:
    with pytest.raises(ValueError):
        output.print_json({"difference": float("nan")})


def test_text_is_wrapped_but_words_stay_whole(monkeypatch) -> None:
    path = "/" + "folder/" * 20
    lines = output.wrapped("  why  ", f"{'word ' * 30}{path}")
    assert lines[0].startswith("  why  word word") and lines[-1] == f"       {path}"
    assert all(line.startswith("       word") and len(line) <= 80 for line in lines[1:-1])
    assert output.wrapped("  why  ", "") == ["  why  "]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, output.wrapped("  why  ", "word " * 30))) in range(35, 41)


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress(monkeypatch, capsys, is_terminal: bool) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    output.progress("a" * 100)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == ("\r" + "a" * 79 + "\r" if is_terminal else "")


def test_silence(capfd) -> None:
    with pytest.raises(KeyError), output.silence():
        print("text")
        print("text", file=sys.stderr)
        os.write(1, b"text")
        os.write(2, b"text")
        raise KeyError
    print("out")
    os.write(2, b"err")
    assert capfd.readouterr() == ("out\n", "err")


@pytest.mark.parametrize(
    ("line", "coloured"),
    [
        ("  onnx       works", "  onnx       \x1b[32mworks\x1b[0m"),
        ("    path    fused op", "    path    \x1b[32mfused op\x1b[0m"),
        ("    change  do it", "\x1b[33m    change\x1b[0m  do it"),
        ("  session    no: layer x", "  session    \x1b[31mno\x1b[0m: layer x"),
        ("2 things to change.", "\x1b[33m2 things to change.\x1b[0m"),
        ("Nothing to change.", "\x1b[32mNothing to change.\x1b[0m"),
        ("  the change works well", "  the change works well"),
    ],
)
def test_colours_are_for_terminals(line: str, coloured: str, monkeypatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert output.coloured(line) == line
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert output.coloured(line) == coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.coloured(line) == line
