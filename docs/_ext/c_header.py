"""The reference of the C interface, made from the comments and declarations of the header.

A page gets it in place of MARK when it is read. On a git host the mark is a comment, which is not
shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

HEADER = Path(__file__).resolve().parents[2] / "include" / "tf_lstm_ops.h"
PREFIX = "TF_LSTM_OPS_"
MARK = "<!-- the reference of include/tf_lstm_ops.h -->\n"
FLAGS = re.MULTILINE | re.DOTALL
COMMENT = r"/\*(?P<comment>(?:(?!\*/).)*)\*/"
CODE = (
    r"^(?:TF_LSTM_OPS_API (?P<function>[^;]+);"
    r"|typedef struct (?P<opaque>\w+) \w+;"
    r"|typedef struct (?P<struct>\w+) \{(?P<members>.*?)^\} \w+;"
    r"|enum \{(?P<codes>.*?)\};"
    r"|\#define (?P<macro>\w+) (?P<value>\d+))$"
)
ITEM = re.compile(rf"(?:{COMMENT}\n)?{CODE}", FLAGS)
MEMBER = re.compile(rf"(?:{COMMENT}\s*)?(?P<code>\w[^;/]*);(?: */\*(?P<after>.*?)\*/)?", FLAGS)
ENUMERATOR = re.compile(r"(?P<name>\w+) = (?P<value>\d+),?(?: */\*(?P<after>.*?)\*/)?", FLAGS)
ROLES = {"function": "func"}  # where a role has another name than the directive
TITLES = {  # of the sections, by the kind and the start of the name
    "function tf_lstm_ops_session_": "Functions of a session",
    "function tf_lstm_ops_stream_": "Functions of a stream",
    "function ": "Functions of the library",
    "struct ": "Structs",
    "type ": "Structs",
    "enumerator ": "Codes and constants",
    "macro ": "Codes and constants",
}
WORD = re.compile(r"`[^`]+`|-Wl,[\w,-]*\w|\w+->\w+|\*?\b_\w+(?:\(\))?|[A-Za-z]\w*(?:\(\))?|\*")


class Entry(NamedTuple):
    """A description of one or more names.

    Attributes:
      kind: a directive of Sphinx' domain of C, such as "function".
      names: of what is described.
      code: the declarations, one for each name.
      comment: of the header, without the marks of comments.
      members: those of a struct.
    """

    kind: str
    names: list[str]
    code: list[str]
    comment: str
    members: list[Entry]


def plain(comment: str | None) -> str:
    """A comment without its stars; paragraphs are separated by an empty line."""
    lines = re.sub(r"^ *\* ?", "", comment or "", flags=re.MULTILINE).strip().splitlines()
    return "\n".join(line.strip() for line in lines)


def members(text: str) -> Iterator[Entry]:
    """The members of a struct. A comment "Since version N." is that of all members behind it."""
    since = ""
    for match in MEMBER.finditer(text):
        before, code = plain(match["comment"]), " ".join(match["code"].split())
        if before.startswith("Since"):
            since, before = before, ""
        name = re.findall(r"(\w+)(?:\[\w+\])?$", code)[0]
        words = [before or plain(match["after"]), since]
        yield Entry("member", [name], [code], "\n\n".join(filter(None, words)), [])


def entries(header: str) -> tuple[str, list[Entry]]:
    """What the header describes.

    Returns:
      Its first comment, and the entries in the order of the header.

    Raises:
      ExtensionError: a declaration of the header has another form.
    """
    first, rest = header.split("*/", 1)
    found: list[Entry] = []
    for match in ITEM.finditer(rest):
        comment = plain(match["comment"])
        if match["function"]:
            code = " ".join(match["function"].split()).replace("( ", "(")
            name = re.findall(r"(\w+)\(", code)[0]
            if not comment and found[-1].kind == "function":  # they share a comment
                found[-1].names.append(name)
                found[-1].code.append(code)
                continue
            found.append(Entry("function", [name], [code], comment, []))
        elif name := match["opaque"]:
            found.append(Entry("type", [name], [name], comment, []))
        elif name := match["struct"]:
            found.append(Entry("struct", [name], [name], comment, [*members(match["members"])]))
        elif name := match["macro"]:
            text = f"{comment.removesuffix('.')}: {match['value']}."
            found.append(Entry("macro", [name], [name], text, []))
        else:
            for code in ENUMERATOR.finditer(match["codes"]):
                shown = f"{code['name']} = {code['value']}"
                found.append(Entry("enumerator", [code["name"]], [shown], plain(code["after"]), []))
    described = {name for entry in found for name in entry.names}
    missing = {*re.findall(r"\b(tf_lstm_ops_\w+)\(|^\} (\w+);", rest, re.MULTILINE)}
    if left := {name for pair in missing for name in pair if name} - described:
        raise ExtensionError(f"{HEADER.name}: c_header.py cannot read {', '.join(sorted(left))}")
    return plain(first.removeprefix("/*")), found


def linked(text: str, kinds: dict[str, str]) -> str:
    """Text of a comment as reStructuredText; names of the header are links.

    Args:
      text: a paragraph.
      kinds: the kind of each name.
    """

    def word(match: re.Match[str]) -> str:
        name = match[0].removesuffix("()")
        if name in kinds:
            return f":c:{ROLES.get(kinds[name], kinds[name])}:`{name}`"
        if PREFIX + name in kinds:
            return f":c:{kinds[PREFIX + name]}:`{name} <{PREFIX}{name}>`"
        if re.match(r"\*?_|`|-|\w+->", match[0]):
            return f"``{match[0].strip('`')}``"
        return match[0].replace("*", "\\*")

    return re.sub(
        r"`[^`]+`|-Wl,[\w,-]*\w|\w+->\w+|\*?\b_\w+(?:\(\))?|[A-Za-z]\w*(?:\(\))?|\*", word, text
    )


def paragraphs(text: str, kinds: dict[str, str]) -> str:
    """A comment as reStructuredText. The subject at the start of a paragraph is bold."""
    found = []
    for paragraph in text.split("\n\n"):
        head = re.match(r"[A-Z][\w-]*(?: \w+)?\.(?=\s\w)|Errors?:", paragraph)
        bold = head[0] if head else ""
        rest = linked(paragraph[len(bold) :], kinds)
        found.append(f"**{bold}**{rest}" if bold else rest)
    return "\n\n".join(found)


def directive(entry: Entry, kinds: dict[str, str], indent: str = "") -> str:
    """An entry in Sphinx' domain of C."""
    head = f".. c:{entry.kind}:: "
    lines = [head + entry.code[0], *(" " * len(head) + code for code in entry.code[1:]), ""]
    lines += [f"   {line}" for line in paragraphs(entry.comment, kinds).splitlines()]
    text = "\n".join(f"{indent}{line}".rstrip() for line in lines).rstrip()
    inner = (directive(member, kinds, f"{indent}   ") for member in entry.members)
    return "\n\n".join([text, *inner])


def markdown(header: str) -> str:
    """The reference as Markdown for MyST.

    Args:
      header: the text of the header.

    Returns:
      A section with the rules of the first comment, and one for each kind of entry.
    """
    first, found = entries(header)
    kinds = {name: entry.kind for entry in found for name in entry.names}
    rules = first.partition("\n\n")[2]
    sections = {"Rules": [paragraphs(rules, kinds)], **{title: [] for title in TITLES.values()}}
    for entry in found:
        sections[title_of(entry)].append(directive(entry, kinds))
    texts = {title: "\n\n".join(parts) for title, parts in sections.items() if parts}
    return "".join(
        f"\n## {title}\n\n```{{eval-rst}}\n{text}\n```\n" for title, text in texts.items()
    )


def title_of(entry: Entry) -> str:
    """The section of an entry."""
    name = f"{entry.kind} {entry.names[0]}"
    return next(title for start, title in TITLES.items() if name.startswith(start))


def insert(app: Sphinx, docname: str, content: list[str]) -> None:
    """Replaces the mark of a page."""
    if MARK in content[0]:
        app.env.note_dependency(str(HEADER), docname=docname)
        reference = markdown(HEADER.read_text(encoding="utf-8"))
        content[0] = content[0].replace(MARK, reference)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", insert)
    return {"parallel_read_safe": True}
