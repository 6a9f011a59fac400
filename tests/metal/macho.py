"""Reads the header and the symbols of a 64-bit Mach-O library."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MAGIC = 0xFEEDFACF
ARM64 = 0x0100000C
LC_SYMTAB, LC_LOAD_DYLIB, LC_CODE_SIGNATURE, LC_BUILD_VERSION = 0x2, 0xC, 0x1D, 0x32
N_STAB, N_TYPE, N_EXT, N_PEXT = 0xE0, 0x0E, 0x01, 0x10  # parts of a symbol's type
N_UNDF = 0
CODE_SIGNATURE = 0xFADE0CC0  # the magic number of an embedded signature


class Library(NamedTuple):
    processor: int
    oldest_macos: str
    needed: list[str]  # install names
    undefined: set[str]  # with the underscore that C puts before a name
    exported: set[str]
    is_signed: bool


class Symbol(NamedTuple):
    name: str
    kind: int
    address: int


def commands(data: bytes) -> Iterator[tuple[int, int]]:
    """The number and the offset of each load command."""
    at = 32
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, size = struct.unpack_from("<2I", data, at)
        yield command, at
        at += size


def symbols(data: bytes, at: int) -> Iterator[Symbol]:
    """The symbols that the command LC_SYMTAB at an offset names."""
    table, count, strings = struct.unpack_from("<3I", data, at + 8)
    for symbol in range(table, table + 16 * count, 16):
        offset, kind, _, _, address = struct.unpack_from("<IBBHQ", data, symbol)
        yield Symbol(text_at(data, strings + offset), kind, address)


def text_at(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def read(path: Path) -> Library:
    data = path.read_bytes()
    magic, processor = struct.unpack_from("<2I", data)
    assert magic == MAGIC, f"{path} is no 64-bit Mach-O file"
    oldest, needed, undefined, exported, is_signed = "", [], set(), set(), False
    for command, at in commands(data):
        [first] = struct.unpack_from("<I", data, at + 8)
        if command == LC_LOAD_DYLIB:
            needed.append(text_at(data, at + first))
        elif command == LC_BUILD_VERSION:
            [version] = struct.unpack_from("<I", data, at + 12)
            oldest = f"{version >> 16}.{version >> 8 & 0xFF}"
        elif command == LC_CODE_SIGNATURE:
            is_signed = struct.unpack_from(">I", data, first)[0] == CODE_SIGNATURE
        elif command == LC_SYMTAB:
            for name, kind, _ in symbols(data, at):
                if kind & N_STAB or not kind & N_EXT:
                    continue
                if kind & N_TYPE == N_UNDF:
                    undefined.add(name)
                elif not kind & N_PEXT:
                    exported.add(name)
    return Library(processor, oldest, needed, undefined, exported, is_signed)
