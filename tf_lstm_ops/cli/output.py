"""What commands share: help with examples, one JSON document on stdout, progress on a terminal."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from typing import Any

_EXAMPLES = "examples:\n"
_GREEN, _YELLOW, _RED = 32, 33, 31
# What has a colour in a line of a report.
_COLOURS = (
    (r"(?<=  )(works|fused op|cuDNN)(?=$|:)|^Nothing to change.*", _GREEN),
    (r"^ +change(?=  )|^\d+ things? to change\.$", _YELLOW),
    (r"(?<=  )(no|does not work)(?=:)|^ +problem(?=  )|not working$", _RED),
)


class Help(argparse.HelpFormatter):
    """Help whose text is wrapped, except the lines of `examples`."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(_EXAMPLES):
            return text
        return super()._fill_text(text, width, indent)


class HelpWithDefaults(Help, argparse.ArgumentDefaultsHelpFormatter):
    """Help that also has the default of each option with a value."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default is False else super()._get_help_string(action)


def examples(*lines: str) -> str:
    """The end of a command's help.

    Args:
      *lines: commands as a user types them.

    Returns:
      The text, for the argument epilog of a parser with `Help`.
    """
    return _EXAMPLES + "\n".join(f"  {line}" for line in lines)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Adds the option --json.

    Args:
      parser: of the command.
    """
    parser.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )


@contextlib.contextmanager
def json_only(wanted: bool) -> Iterator[None]:
    """A context in which only `print_json`, called after it, writes to stdout.

    Args:
      wanted: whether the command has the option --json. If not, nothing changes.

    Yields:
      None. What the context prints goes to stderr if that is a terminal. Else it is dropped.
    """
    if not wanted:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr if sys.stderr.isatty() else io.StringIO()):
        yield


def print_json(document: Any) -> None:
    """Prints a document.

    Args:
      document: dictionaries, lists, text, finite numbers, truth values and None.
    """
    print(json.dumps(document, indent=1, allow_nan=False))


def columns(rows: list[tuple[str, ...]]) -> list[str]:
    """A table with columns of equal width.

    Args:
      rows: the cells of each row; all rows have the same number of cells.

    Returns:
      The lines.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def width() -> int:
    """The longest line of text that a command prints.

    Returns:
      The columns of the terminal; 80 if stdout is none.
    """
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 80


def wrapped(head: str, text: str) -> list[str]:
    """Breaks text at blanks, so that it fits `width`. A longer word, such as a path, stays whole.

    Args:
      head: the begin of the first line; as many blanks begin the others.
      text: the rest.

    Returns:
      The lines.
    """
    columns = max(width() - len(head), 20)
    lines = textwrap.wrap(text, columns, break_long_words=False, break_on_hyphens=False)
    heads = (head, *[" " * len(head)] * len(lines))
    return [f"{head}{line}" for head, line in zip(heads, lines or [""], strict=False)]


def print_facts(rows: list[tuple[str, str]]) -> None:
    """Prints names with values. Long values are wrapped.

    Args:
      rows: the name and the value of each line.
    """
    longest = max(len(name) for name, _ in rows)
    for name, value in rows:
        print("\n".join(wrapped(f"{name:{longest}}  ", value)))


def coloured(line: str) -> str:
    """Gives a line of a report colours, on a terminal.

    Args:
      line: the line. A name at its begin says what it is; "works" and such end a line.

    Returns:
      The line; without a change if stdout is no terminal or the variable NO_COLOR is set.
    """
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return line
    for pattern, colour in _COLOURS:
        line = re.sub(pattern, f"\x1b[{colour}m\\g<0>\x1b[0m", line)
    return line


def progress(text: str) -> None:
    """Shows what the command does now, in a line that the next call replaces.

    Args:
      text: what it does; empty: removes the line. Nothing is shown unless stderr is a terminal.
    """
    if sys.stderr.isatty():
        columns = min(shutil.get_terminal_size().columns - 1, 79)
        print(f"\r{text:<{columns}.{columns}}\r", end="", flush=True, file=sys.stderr)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """A context that drops stdout and stderr, also what libraries in C++ write.

    Yields:
      None.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    saved = [os.dup(1), os.dup(2)]
    dropped = io.StringIO()
    with (
        tempfile.TemporaryFile() as file,
        contextlib.redirect_stdout(dropped),
        contextlib.redirect_stderr(dropped),
    ):
        try:
            for number in (1, 2):
                os.dup2(file.fileno(), number)
            yield
        finally:
            for number, copy in enumerate(saved, 1):
                os.dup2(copy, number)
                os.close(copy)
