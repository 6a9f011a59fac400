"""The Objective-C declarations of our headers, and those that packages publish of Apple's.

`published.json` holds the members of Apple's classes that we declare, as TypeScript declarations of
an npm package have them, and values of enumerations from PyPI's pyobjc. It was written by
``python declarations.py NPM_PACKAGE PYOBJC``, the folders of the unpacked packages.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
PUBLISHED = HERE / "published.json"
FRAMEWORKS = ("Foundation", "Metal", "MetalPerformanceShaders", "MetalPerformanceShadersGraph")
PACKAGES = {
    "npm": "@nativescript/macos-node-api@0.4.0",
    "PyPI": [f"pyobjc-framework-{name}==12.2.2" for name in FRAMEWORKS[1:]],
}

NUMBERS = {"NSUInteger", "NSInteger", "double", "uint32_t", "long long"}


class Member(NamedTuple):
    """A method or the getter of a property, in a form common to Objective-C and TypeScript."""

    owner: str
    name: str  # the parts of a selector, joined as TypeScript has them
    is_static: bool
    parameters: tuple[str, ...]
    result: str

    def __str__(self) -> str:
        """Without the owner and without spaces, as in published.json."""
        sign = "+" if self.is_static else "-"
        return f"{sign}{self.name}({','.join(self.parameters)}):{self.result}"


# --- our headers -----------------------------------------------------------------------------


def headers() -> dict[str, str]:
    """The text of each framework's header."""
    folders = {name: HERE / "include" for name in FRAMEWORKS} | {
        "Foundation": HERE / "include_macos"
    }
    return {name: (folders[name] / name / f"{name}.h").read_text() for name in FRAMEWORKS}


def declared(header: str) -> Iterator[Member]:
    text = re.sub(r"//.*", "", header)
    for owner, body in re.findall(
        r"^@(?:interface|protocol) (\w+)[^;]*?\n(.*?)^@end", text, re.DOTALL | re.MULTILINE
    ):
        body = re.sub(r"\{.*?\}", "", body, flags=re.DOTALL)
        for sign, result, signature in re.findall(
            r"^([-+]) \(([^()]*(?:\([^()]*\))?[^()]*)\)(.*?);", body, re.DOTALL | re.MULTILINE
        ):
            yield Member(owner, *_method(sign, result, " ".join(signature.split())))
        for attributes, type_name, name in re.findall(
            r"^@property\(([^)]*)\) (.*?)(\w+);", body, re.MULTILINE
        ):
            is_static = "class" in attributes.split(", ")
            yield Member(owner, name, is_static, (), _from_objective_c(type_name))


def enumerations(header: str) -> dict[str, int]:
    found = {}
    for body in re.findall(r"NS_ENUM\(\w+, \w+\) \{(.*?)\}", header, re.DOTALL):
        for name, value in re.findall(r"(\w+) = (\w+)", body):
            found[name] = int(value, 0)
    return found


def _method(sign: str, result: str, signature: str) -> tuple[str, bool, tuple[str, ...], str]:
    parts = re.findall(r"(\w+)\s*:\s*\(((?:[^()]|\([^()]*\))*)\)\s*\w+", signature)
    labels = [label for label, _ in parts] or [signature.strip()]
    name = labels[0] + "".join(label[0].upper() + label[1:] for label in labels[1:])
    types = tuple(_from_objective_c(type_name) for _, type_name in parts)
    return name, sign == "+", types, _from_objective_c(result)


def _from_objective_c(type_name: str) -> str:
    name = type_name.replace("const ", "").strip()
    if protocol := re.fullmatch(r"id<(\w+)>", name):
        return protocol[1]
    if name in NUMBERS:
        return "number"
    known = {
        "BOOL": "boolean",
        "char*": "string",
        "void*": "pointer",
        "NSZone*": "pointer",
        "NSString*": "string",
        "MPSShape*": "NSArray",
        "MPSGraphTensorDataDictionary*": "NSDictionary",
        "NSFastEnumerationState*": "pointer",
        "id __unsafe_unretained[]": "pointer",
        "KeyType<NSCopying>": "NSCopying",
    }
    return known.get(name) or re.sub(r"<.*>", "", name).rstrip("*")


# --- what is published -----------------------------------------------------------------------


def published(typescript: str) -> Iterator[Member]:
    for owner, body in re.findall(
        r"^declare (?:class|interface) (\w+)[^\n]*\{\n(.*?)^\}",
        typescript,
        re.DOTALL | re.MULTILINE,
    ):
        for line in body.splitlines():
            if method := re.fullmatch(r"  (static )?(\w+)\??(?:<.*?>)?\((.*)\): (.*);", line):
                is_static, name, parameters, result = method.groups()
                types = tuple(_parameters(parameters))
                yield Member(owner, name, bool(is_static), types, _from_typescript(result))
            elif value := re.fullmatch(r"  (static )?(?:readonly )?(\w+): (.*);", line):
                is_static, name, result = value.groups()
                yield Member(owner, name, bool(is_static), (), _from_typescript(result))


def _parameters(text: str) -> Iterator[str]:
    """The types of `name: type, …`, but for the `this` of static methods. No method that we declare
    takes a function.
    """
    enums = re.sub(r"interop\.Enum<typeof (\w+)>", r"\1", text)
    plain = re.sub(r"<.*?>+", "", enums)
    for name, type_name in re.findall(r"(\w+)\??: ([^,]+)", plain):
        if name != "this":
            yield _from_typescript(type_name)


def _from_typescript(type_name: str) -> str:
    name = type_name.removesuffix(" | null")
    if enum := re.fullmatch(r"interop\.Enum<typeof (\w+)>", name):
        return enum[1]
    known = {
        "interop.PointerConvertible": "pointer",
        "interop.Pointer": "pointer",
        "interop.Object": "id",
        "this": "instancetype",
        "InstanceType<This>": "instancetype",
    }
    return known.get(name) or re.sub(r"<.*>", "", name.partition(" | ")[0])


# --- the file --------------------------------------------------------------------------------


def extract(npm: Path, pyobjc: Path) -> dict[str, object]:
    """The content of published.json."""
    ours = headers()
    wanted = {(m.owner, m.name) for header in ours.values() for m in declared(header)}
    members: dict[str, list[str]] = {}
    for path in ("Runtime", *FRAMEWORKS):
        for member in published(_typescript(npm, path)):
            if (member.owner, member.name) in wanted:
                members.setdefault(member.owner, []).append(str(member))
    names = {name for header in ours.values() for name in enumerations(header)}
    values = {}
    for framework in FRAMEWORKS[1:]:
        metadata = (pyobjc / framework / "_metadata.py").read_text()
        values.update({n: int(v) for n, v in re.findall(r"(\w+)@(\d+)", metadata) if n in names})
    return {
        "packages": PACKAGES,
        "members": {owner: sorted(set(texts)) for owner, texts in sorted(members.items())},
        "enumerations": dict(sorted(values.items())),
    }


def text_of(content: dict[str, object]) -> str:
    """The text of published.json, in which no name has a space."""
    text = json.dumps(content)
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n"


def _typescript(npm: Path, framework: str) -> str:
    for folder in (npm / "types", npm):
        if (folder / f"{framework}.d.ts").exists():
            return (folder / f"{framework}.d.ts").read_text()
    raise FileNotFoundError(f"{framework}.d.ts in {npm}")


if __name__ == "__main__":
    found = extract(Path(sys.argv[1]), Path(sys.argv[2]))
    PUBLISHED.write_text(text_of(found))
