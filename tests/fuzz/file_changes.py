"""Changes of files of models: of their bytes, JSON, HDF5 groups, zip members and arrays."""

import functools
import io
import json
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from .draw import HUGE, choose, happens
from .onnx_files import change_bytes

Rng = np.random.Generator
Arrays = dict[str, np.ndarray]
NUMBERS: list[Any] = [0, -1, 1, 2, 3, 7, 0.5, -0.1, 1e30, 1e400, 10**6, 2**80, *HUGE]
VALUES: list[Any] = [None, True, False, "", "x", "tanh", [], {}, [None], [[]], "/etc/hostname"]
VERSIONS = ["0.3.3", "1.2.2", "2.0.0", "2.2.4-tf", "2.15.0", "3.0.0", "3.12.0", "4.0", "x", ""]
DTYPES = ["f8", "f2", "i4", "i8", "u1", "S4", "?", "c8", "f4", ">f4"]
CHUNK, CHUNKS = 1 << 24, 40  # bytes of zeros that a small file may stand for, in equal parts


# --- JSON ---------------------------------------------------------------------------------------


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """All containers with their keys; of a long list the ends."""
    found, waiting = [], [tree]
    while waiting:
        part = waiting.pop()
        keys = [*part] if isinstance(part, dict) else [*range(len(part))]
        if isinstance(part, list) and len(part) > 12:
            keys = [*keys[:1], *keys[-1:]]
        found += [(part, key) for key in keys]
        waiting += [part[key] for key in keys if isinstance(part[key], dict | list)]
    return found


def _nested(rng: Rng, value: Any) -> Any:
    for _ in range(choose(rng, [1, 2, 20, 150, 900])):
        value = [value] if happens(rng, 0.5) else {"config": value, "class_name": "Sequential"}
    return value


def change_json(rng: Rng, text: str) -> tuple[str, str]:
    """Changes values of a text of JSON. Numbers change as often as everything else."""
    tree, said = json.loads(text), []
    for _ in range(choose(rng, [1, 1, 1, 2, 4])):
        places = _places(tree)
        if not places:
            break
        part, key = choose(rng, places)
        kind = choose(rng, ["drop", "value", "number", "swap", "swap", "like", "like", "nest"])
        said.append(f"{kind} {key}")
        if kind == "drop":
            del part[key]
        elif kind == "value":
            part[key] = choose(rng, VALUES)
        elif kind == "number":
            part[key] = choose(rng, NUMBERS)
        elif kind == "nest":
            part[key] = _nested(rng, part[key])
        else:  # a value of another place, as a rule of the same type
            values = [other[where] for other, where in places]
            if kind == "like":
                values = [value for value in values if type(value) is type(part[key])]
            part[key] = json.loads(json.dumps(choose(rng, values)))
    return f"json: {said}", json.dumps(tree)


# --- HDF5 ---------------------------------------------------------------------------------------


def _members(file: Any) -> tuple[list[str], list[str]]:
    """The paths of groups and of datasets."""
    groups, data = [], []
    file.visititems(lambda n, part: (groups if isinstance(part, h5py.Group) else data).append(n))
    return ["/", *groups], data


def _attribute(rng: Rng, file: Any) -> str:
    paths = [p for both in _members(file) for p in both if len(file[p].attrs)]
    if not paths:
        return "nothing"
    attrs = file[choose(rng, paths)].attrs
    name = choose(rng, sorted(attrs))
    value = attrs[name]
    is_text = isinstance(value, str | bytes)
    if is_text and str(value)[:1] == "{" and happens(rng, 0.9):
        said, attrs[name] = change_json(rng, value if isinstance(value, str) else value.decode())
        return said
    kind = choose(rng, ["drop", "value", "list", "list", "list"])
    if kind == "drop":
        del attrs[name]
    elif kind == "list" and isinstance(value, np.ndarray) and value.size:
        ways = [value[::-1], value[:-1], [*value, value[0]], value[:0], value[:1], [*value, b"x"]]
        attrs[name] = np.array([*choose(rng, ways)], value.dtype)
    elif is_text and "version" in name:
        attrs[name] = choose(rng, VERSIONS)
    else:
        odd = [1, 1.5, b"x", "\u00e9", [b"a", b"b"], np.zeros(3), h5py.Empty("f4"), "../x"]
        attrs[name] = choose(rng, odd)
    return f"attribute {kind} {name}"


def _links(rng: Rng, file: Any) -> str:
    """Drops, renames, copies and links members; a group may hold itself."""
    groups, data = _members(file)
    path = choose(rng, [*groups[1:], *data])
    group = choose(rng, groups)
    kind = choose(rng, ["drop", "move", "swap", "swap", "hard", "soft", "external", "copy"])
    name = choose(rng, [f"{group}/more", f"{group}/{path.rpartition('/')[2]}x", f"{path}_1"])
    targets = {
        "hard": lambda: file[choose(rng, groups)],
        "soft": lambda: h5py.SoftLink(choose(rng, ["/", f"/{path}", "/none"])),
        "external": lambda: h5py.ExternalLink("/etc/hostname", "/"),
    }
    if kind == "drop":
        del file[path]
    elif kind == "swap":
        other = choose(rng, data if path in data else groups[1:])
        if other.startswith(path) or path.startswith(other):
            return "nothing"
        file.move(path, "/kept_aside")
        file.move(other, path)
        file.move("/kept_aside", other)
    elif kind in ("move", "copy"):
        if name.startswith(path + "/"):
            return "nothing"
        (file.move if kind == "move" else file.copy)(path, name)
    else:
        target = targets[kind]()
        if happens(rng, 0.5):
            del file[path]
            name = path
        file[name] = target
    return f"{kind} {path} {name}"


@functools.cache
def _zeros() -> bytes:
    return zlib.compress(bytes(CHUNK))


def _dataset(rng: Rng, file: Any) -> str:
    """Another type, shape or storage of an array."""
    path = choose(rng, _members(file)[1])
    value = np.asarray(file[path][()])
    kind = choose(rng, ["dtype", "shape", "shape", "huge", "bomb", "null", "text", "values"])
    del file[path]
    wide = choose(rng, [(2**40,), (2**15, 2**15), (0, 2**40), (2**31, 2**31), (2**20,)])
    if kind == "dtype":
        file[path] = np.nan_to_num(value).astype(choose(rng, DTYPES))
    elif kind == "shape":
        shapes = [value.T, value.reshape(-1), value[None], value[..., None], value[:0], value[:1]]
        file[path] = choose(rng, shapes)
    elif kind == "huge":
        file.create_dataset(path, wide, "f4", chunks=tuple(min(64, n or 1) for n in wide))
    elif kind == "bomb":
        rows, count = CHUNK // 16, choose(rng, [1, 8, CHUNKS])
        shape, chunks = (rows * count, 4), (rows, 4)
        made = file.create_dataset(path, shape, "f4", chunks=chunks, compression="gzip")
        for k in range(count):
            made.id.write_direct_chunk((k * rows, 0), _zeros())
    elif kind == "null":
        file[path] = h5py.Empty("f4")
    elif kind == "text":
        file[path] = choose(rng, ["text", b"text", [b"a", b"b"]])
    else:
        numbers = choose(rng, [np.nan, np.inf, 0.0, 1e30, 0.25])
        file[path] = np.full_like(value, numbers)
    return f"dataset {kind} {path}"


def change_hdf5(rng: Rng, data: bytes) -> tuple[str, bytes]:
    """Changes attributes, links and arrays of an HDF5 file."""
    held, said = io.BytesIO(data), []
    with h5py.File(held, "r+") as file:
        for _ in range(choose(rng, [1, 1, 2, 3])):
            if not _members(file)[1]:
                break
            try:
                said.append(choose(rng, [_attribute, _attribute, _links, _dataset])(rng, file))
            except (LookupError, ValueError, OSError, RuntimeError, TypeError, MemoryError):
                said.append("not possible")  # after another change
    return f"hdf5: {said}", held.getvalue()


# --- zip ----------------------------------------------------------------------------------------


def change_zip(rng: Rng, data: bytes) -> tuple[str, bytes]:
    """Changes the members of an archive: of .keras files also their JSON and HDF5."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = choose(rng, sorted(members))
    kind = choose(rng, ["inside"] * 20 + ["drop", "name", "bomb", "twice", "swap", "deflate"])
    method, said = zipfile.ZIP_STORED, kind
    if kind == "inside":
        said, members[name] = _inside(rng, name, members[name])
    elif kind == "drop":
        del members[name]
    elif kind == "name":
        members[choose(rng, ["../x", "/x", name.upper(), "x" * 300, "x"])] = members.pop(name)
    elif kind == "bomb":
        members[name], method = bytes(CHUNK * CHUNKS), zipfile.ZIP_DEFLATED
    elif kind == "swap":
        members[name] = members[choose(rng, sorted(members))]
    elif kind == "deflate":
        method = choose(rng, [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", method, compresslevel=1) as archive:
        for each, content in members.items():
            archive.writestr(each, content)
        if kind == "twice":
            archive.writestr(name.swapcase(), members[name])
    return f"zip: {said} {name}", held.getvalue()


def _inside(rng: Rng, name: str, content: bytes) -> tuple[str, bytes]:
    if name.endswith(".json"):
        said, text = change_json(rng, content.decode())
        return said, text.encode()
    if name.endswith(".h5"):
        return change_hdf5(rng, content)
    return change_bytes(rng, content) if content else ("nothing", b"x")


# --- arrays -------------------------------------------------------------------------------------


def change_arrays(rng: Rng, arrays: Arrays) -> tuple[str, Arrays]:
    """Changes names, types, shapes and values of arrays by name."""
    found, said = dict(arrays), []
    for _ in range(choose(rng, [1, 1, 2, 3])):
        name = choose(rng, sorted(found))
        kind = choose(rng, ["drop", "name", "swap", "swap", "dtype", "shape", "shape", "values"])
        value, other = found[name], choose(rng, sorted(found))
        said.append(f"{kind} {name}")
        if kind == "drop" and len(found) > 1:
            del found[name]
        elif kind == "name":
            found[choose(rng, [name + "_1", name.upper(), other + "/x", "x", "a.b"])] = value
        elif kind == "swap":
            found[name], found[other] = found[other], value
        elif kind == "dtype":
            found[name] = value.astype(choose(rng, ["f8", "f2", "i4", "i8", "u1", "?"]))
        elif kind == "shape":
            shapes = [value.T, value.reshape(-1), value[None], value[:0], value[:1], value[..., :1]]
            found[name] = np.ascontiguousarray(choose(rng, shapes))
        elif kind == "values":
            found[name] = np.full_like(value, choose(rng, [np.nan, np.inf, 0.0, 1e30, 0.25]))
    return f"arrays: {said}", found


Change = Callable[[Rng, bytes], tuple[str, bytes]]


def change_file(rng: Rng, path: Path, *changes: Change) -> str:
    """Rewrites a file with its bytes changed, or by one of the other changes."""
    change = choose(rng, [change_bytes, *changes * 3])
    try:
        said, data = change(rng, path.read_bytes())
    except RecursionError:  # JSON too deep for the writer
        return "nothing"
    path.unlink()  # another file: the last one may be mapped still
    path.write_bytes(data)
    return said
