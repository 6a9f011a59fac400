"""Reads the header and the symbols of a 64-bit Mach-O library."""

from __future__ import annotations

import struct
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


def read(path: Path) -> Library:
    data = path.read_bytes()
    magic, processor, _, _, commands = struct.unpack_from("<5I", data)
    assert magic == MAGIC, f"{path} is no 64-bit Mach-O file"
    oldest, needed, undefined, exported, is_signed = "", [], set(), set(), False
    at = 32
    for _ in range(commands):
        command, size = struct.unpack_from("<2I", data, at)
        if command == LC_LOAD_DYLIB:
            [name] = struct.unpack_from("<I", data, at + 8)
            needed.append(data[at + name : at + size].split(b"\0")[0].decode())
        elif command == LC_BUILD_VERSION:
            [version] = struct.unpack_from("<I", data, at + 12)
            oldest = f"{version >> 16}.{version >> 8 & 0xFF}"
        elif command == LC_CODE_SIGNATURE:
            [signature] = struct.unpack_from("<I", data, at + 8)
            is_signed = struct.unpack_from(">I", data, signature)[0] == CODE_SIGNATURE
        elif command == LC_SYMTAB:
            undefined, exported = _symbols(data, *struct.unpack_from("<4I", data, at + 8))
        at += size
    return Library(processor, oldest, needed, undefined, exported, is_signed)


def _symbols(
    data: bytes, table: int, count: int, strings: int, length: int
) -> tuple[set[str], set[str]]:
    undefined, exported = set(), set()
    names = data[strings : strings + length]
    for at in range(table, table + 16 * count, 16):
        offset, kind = struct.unpack_from("<IB", data, at)
        if kind & N_STAB or not kind & N_EXT:
            continue
        name = names[offset : names.index(b"\0", offset)].decode()
        if kind & N_TYPE == N_UNDF:
            undefined.add(name)
        elif not kind & N_PEXT:
            exported.add(name)
    return undefined, exported
