""".safetensors files, written byte by byte, right and wrong."""

import json
from typing import Any

import numpy as np

from .draw import HUGE, choose
from .mutations import Import, Mutation

NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}
Header = dict[str, Any]


def to_bytes(arrays: dict[str, Any]) -> bytes:
    """A right file."""
    header, data = _parts(arrays)
    return _file(json.dumps(header).encode(), data)


def _parts(arrays: dict[str, Any]) -> tuple[Header, bytes]:
    header: Header = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, array in arrays.items():
        offsets = [len(data), len(data) + array.nbytes]
        entry = {"dtype": NAMES[array.dtype.name], "shape": list(array.shape)}
        header[name] = {**entry, "data_offsets": offsets}
        data += array.tobytes()
    return header, data


def _file(header: bytes, data: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + data


# --- changes -----------------------------------------------------------------------------------

DTYPES = ["F8_E4M3", "F8_E5M2", "F8_E8M0", "F4", "F6_E2M3", "BF16", "F16", "F32", "F64", "BOOL"]
DTYPES += ["I8", "U8", "I64", "U64", "C64", "f64", "", "X" * 500]
NO_VALUES: list[Any] = [None, 7, -1, 0.5, "text", [], {}, [[]], True, 1e400, 2**80]


def _sizes(rng: np.random.Generator, right: list[int]) -> list[Any]:
    k = int(rng.integers(len(right)))
    huge = choose(rng, [*HUGE, 2**63, 2**64 - 1, 2**64, 2**80])
    changed = [*right]
    changed[k] = choose(
        rng, [-1, 0, 0.5, None, "4", huge, right[k] + 1, right[k] - 1, float(right[k])]
    )
    several = [[huge, huge], [0, huge], [huge, 0], [4 * right[0], 0], [1] * 70, right[::-1]]
    return choose(rng, [changed, changed, *several, [], [*right, 1], [*right, 0]])


def _entry(rng: np.random.Generator, header: Header) -> str:
    """Changes a part of an entry, its type, or the entry as a whole."""
    name = choose(rng, list(header))
    entry = header[name] = dict(header[name])
    key = choose(rng, list(entry))
    kind = choose(rng, ["value", "value", "value", "value", "type", "remove", "add", "whole"])
    if kind == "whole":
        header[name] = choose(rng, NO_VALUES)
    elif kind == "remove":
        del entry[key]
    elif kind == "add":
        entry["more"] = choose(rng, NO_VALUES)
    elif kind == "type" or key == "format":
        entry[key] = choose(rng, NO_VALUES)
    elif key == "dtype":
        entry[key] = choose(rng, DTYPES)
    elif key == "shape":
        entry[key] = _sizes(rng, entry[key])
    else:
        entry[key] = _sizes(rng, entry[key])
        if rng.random() < 0.3:
            entry[key] = header[choose(rng, [k for k in header if k != name])].get(key, [0, 0])
    return f"{name}: {header.get(name)}"


def _empty(rng: np.random.Generator, header: Header) -> str:
    """Tensors without elements and with large sizes."""
    size = choose(rng, [2**20, 2**33, 2**40, 2**58])
    for name in [name for name in header if name != "__metadata__"]:
        shape = choose(rng, [[0, size], [size, 0], [4 * size, 0], [0, 4 * size], [0]])
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [0, 0]}
    return str({name: entry.get("shape") for name, entry in header.items()})


def _key(rng: np.random.Generator, header: Header) -> str:
    name = choose(rng, list(header))
    key = choose(rng, ["", "\ud800", "\0", "x" * 5000, "__metadata__", "weight_ih_l0", name + " "])
    header[key] = header.pop(name)
    return f"{name} becomes {key[:50]!r}"


def _text(rng: np.random.Generator, text: bytes) -> bytes:
    """A header as another text."""
    pairs = text[1:-1]
    deep = int(rng.integers(1, 2000))
    return choose(
        rng,
        [
            b"",
            b"{}",
            b"null",
            b"[]",
            b" " * 9,
            b"[" * deep + b"]" * deep,
            b'{"a":' * deep + b"1" + b"}" * deep,
            b"{" + pairs + b"," + pairs + b"}",  # each key twice
            text.replace(b'"shape"', b'"shape": [1], "shape"', 1),
            text.replace(b":", b"", 1),
            text.replace(b"_", b"\xff", 1),
            text + b" " * int(rng.integers(9)),
            b" " + text,
            text + b"{}",
        ],
    )


def _bytes(rng: np.random.Generator, file: bytes) -> tuple[str, bytes]:
    """Bits turned over, a part cut off, or another length of the header."""
    kind = choose(rng, ["flip", "flip", "flip in header", "cut", "more", "length"])
    if kind == "cut":
        return kind, file[: rng.integers(len(file))]
    if kind == "more":
        return kind, file + bytes(int(rng.integers(1, 20)))
    if kind == "length":
        length = int.from_bytes(file[:8], "little")
        near = [length - 1, length + 1, len(file), len(file) - 8]
        length = choose(rng, [0, 1, *near, 10**8, 10**8 + 1, *HUGE, 2**64 - 1])
        return kind, length.to_bytes(8, "little") + file[8:]
    changed = bytearray(file)
    end = len(file) if kind == "flip" else 8 + int.from_bytes(file[:8], "little")
    for _ in range(choose(rng, [1, 1, 2, 8])):
        changed[rng.integers(end)] ^= 1 << int(rng.integers(8))
    return kind, bytes(changed)


def mutate(rng: np.random.Generator, right: Import) -> Mutation:
    """Changes the file of an importer."""
    header, data = _parts(right.arrays)
    kind = choose(rng, ["entry", "entry", "entry", "empty", "key", "text", "bytes", "bytes"])
    text = ""
    if kind == "bytes":
        text, file = _bytes(rng, right.options["data"])
    elif kind == "text":
        written = _text(rng, json.dumps(header).encode())
        text, file = f"{written[:60]!r}", _file(written, data)
    else:
        if kind == "empty":
            data = b""
        text = {"entry": _entry, "empty": _empty, "key": _key}[kind](rng, header)
        file = _file(json.dumps(header).encode(), data)
    options = {**right.options, "data": file}
    text = f"safetensors, {kind}, {text}"
    return Mutation(right.arrays, options, kind, text, is_comparable=False)
