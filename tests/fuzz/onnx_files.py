"""ONNX files of recurrent nodes, right and wrong."""

import contextlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from weights.formats import Weights

from .draw import HUGE, INT32, choose, happens
from .mutations import Import, Mutation

TYPES = {"float64": 11, "float32": 1, "float16": 10, "bfloat16": 16}


def to_bytes(rng: np.random.Generator, weights: Weights) -> bytes:
    """A right file of the layers of a stack. The weights stand in it in one of several ways."""
    from onnx_graph import models

    nodes: list[Any] = []
    source, d = "x", weights.directions
    for k in range(weights.num_layers):
        single = _layer(weights, k)
        node, arrays = models.layer(single, choose(rng, ["", f"L{k}"]), source, f"y{k}")
        nodes += [*_constants(rng, arrays), node, *_merge(k, d)]
        source = f"x{k}"
    graph = models.graph(nodes)
    if happens(rng, 0.3):
        given = {"then_branch": models.graph(nodes, inputs=()), "else_branch": _other()}
        graph = models.graph([_node("If", ["c"], ["out"], **given)], inputs=("x", "c"))
    return models.model(graph, choose(rng, [13, 17, 21])).SerializeToString()


def read(kind: type[Weights], source: Any) -> Weights:
    """By from_onnx. Changed options of a node cause a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return kind.from_onnx(source)


def _node(*arguments: Any, **given: Any) -> Any:
    from onnx import helper

    return helper.make_node(*arguments, **given)


def _tensor(array: Any) -> Any:
    from onnx import TensorProto

    array = np.asarray(array)
    kind = TYPES.get(array.dtype.name, 7)
    return TensorProto(data_type=kind, dims=array.shape, raw_data=array.tobytes())


def _layer(weights: Weights, k: int) -> Weights:
    d = weights.directions
    options = {k: v for k, v in vars(weights).items() if k not in ("cells", "directions")}
    return type(weights)(weights.cells[k * d : (k + 1) * d], d, **options)


def _other() -> Any:
    from onnx_graph import models

    return models.graph([_node("Neg", ["x"], ["n"])], inputs=())


def _constants(rng: np.random.Generator, arrays: dict[str, Any]) -> list[Any]:
    """Nodes Constant, or several that compute the array."""
    nodes = []
    for name, array in arrays.items():
        if happens(rng, 0.7):
            nodes.append(_node("Constant", [], [name], value=_tensor(array)))
            continue
        parts = [f"{name}_{k}" for k in range(len(array))]
        axes = f"{name}_axes"
        nodes.append(_node("Constant", [], [axes], value=_tensor(np.array([0]))))
        for part, values in zip(parts, array, strict=True):
            nodes.append(_node("Constant", [], [f"{part}_c"], value=_tensor(values)))
            nodes.append(_node("Unsqueeze", [f"{part}_c", axes], [part]))
        nodes.append(_node("Concat", parts, [name], axis=0))
    return nodes


def _merge(k: int, directions: int) -> list[Any]:
    shape = np.array([1]) if directions == 1 else np.array([0, 0, -1])
    constant = _node("Constant", [], [f"s{k}"], value=_tensor(shape))
    if directions == 1:
        return [constant, _node("Squeeze", [f"y{k}", f"s{k}"], [f"x{k}"])]
    return [
        constant,
        _node("Transpose", [f"y{k}"], [f"t{k}"], perm=[0, 2, 1, 3]),
        _node("Reshape", [f"t{k}", f"s{k}"], [f"x{k}"]),
    ]


# --- changes -----------------------------------------------------------------------------------

INTS = [*INT32, *HUGE, 2, 3, 4, 7, 8, 16, 32, 99, -(2**63)]
FLOATS = [0.0, -1.0, 3.5, np.inf, np.nan]
TEXTS = ["", "\0", "x", "y0", "W", "LSTM", "GRU", "RNN", "If", "Loop", "Concat", "Identity", "Add"]
TEXTS += ["Reshape", "Cast", "Slice", "Gather", "ConstantOfShape", "DequantizeLinear", "Div"]
TEXTS += [
    "com.microsoft",
    "ai.onnx",
    "DynamicQuantizeLSTM",
    "axis",
    "direction",
    "relu",
    "\U0001f600",
]
TEXTS += ["reverse", "activations", "clip", "hidden_size", "layout", "q" * 3000]


def mutate(rng: np.random.Generator, right: Import) -> Mutation:
    """Changes the bytes of the file, or fields of its message."""
    kind = choose(rng, ["bytes", "bytes", "fields", "fields", "fields", "fields"])
    text, data = {"bytes": change_bytes, "fields": change_fields}[kind](rng, right.options["data"])
    text = f"{right.name}, {kind}, {text}"
    return Mutation(right.arrays, {"data": data}, kind, text, is_comparable=False)


def change_bytes(rng: np.random.Generator, file: bytes) -> tuple[str, bytes]:
    """Bits turned over, or a part cut out, repeated or added."""
    kind = choose(rng, ["flip", "flip", "flip", "end", "cut", "repeat", "add"])
    a, b = sorted(rng.integers(0, len(file), 2))
    if kind == "flip":
        changed = bytearray(file)
        for _ in range(choose(rng, [1, 1, 2, 8])):
            changed[rng.integers(len(file))] ^= 1 << int(rng.integers(8))
        return kind, bytes(changed)
    parts = {
        "end": file[:a],
        "cut": file[:a] + file[b:],
        "repeat": file[:b] + file[a:],
        "add": file + rng.integers(0, 256, int(rng.integers(1, 20))).astype("u1").tobytes(),
    }
    return f"{kind} {a} {b}", parts[kind]


def change_fields(rng: np.random.Generator, file: bytes, kind: Any = None) -> tuple[str, bytes]:
    """Changes fields of a message of a class of protobuf, as a rule of ONNX's models."""
    if kind is None:
        from onnx import ModelProto as kind

    model = kind()
    model.ParseFromString(file)
    texts = []
    for _ in range(choose(rng, [1, 1, 1, 2, 4])):
        message = _any_message(rng, model)
        fields = message.DESCRIPTOR.fields
        if not fields:
            continue
        set_fields = [field for field, _ in message.ListFields()]
        field = choose(rng, set_fields if set_fields and happens(rng, 0.85) else list(fields))
        texts.append(f"{message.DESCRIPTOR.name}.{field.name}")
        (_repeated if _is_repeated(field) else _single)(rng, message, field)
    return ", ".join(texts), model.SerializePartialToString()


def _is_repeated(field: Any) -> bool:
    if hasattr(field, "is_repeated"):
        return field.is_repeated
    return field.label == field.LABEL_REPEATED


def _is_map(field: Any) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _any_message(rng: np.random.Generator, message: Any) -> Any:
    """A message at any depth. Large parts are more likely."""
    while True:
        parts: list[Any] = []
        for field, value in message.ListFields():
            if field.message_type is not None:
                several = value.values() if _is_map(field) else value
                parts += list(several) if _is_repeated(field) else [value]
        parts = [part for part in parts if hasattr(part, "ListFields")]  # the others are of maps
        if not parts or happens(rng, 0.15):
            return message
        sizes = np.sqrt([1 + part.ByteSize() for part in parts])
        message = parts[rng.choice(len(parts), p=sizes / sizes.sum())]


def _value(rng: np.random.Generator, field: Any, old: Any) -> Any:
    kinds: dict[int, Callable[[], Any]] = {
        field.CPPTYPE_STRING: lambda: choose(rng, TEXTS),
        field.CPPTYPE_FLOAT: lambda: choose(rng, FLOATS),
        field.CPPTYPE_DOUBLE: lambda: choose(rng, FLOATS),
        field.CPPTYPE_ENUM: lambda: choose(rng, list(field.enum_type.values_by_number)),
    }
    value = kinds.get(field.cpp_type, lambda: choose(rng, INTS))()
    if field.type == field.TYPE_BYTES:
        old = old or b""
        return choose(rng, [b"", old[:-1], old + b"\0", value.encode(), b"\xff", old[::-1]])
    return value


def _set(change: Callable[[], Any]) -> None:
    """Sets a field, but for numbers that its type does not hold."""
    with contextlib.suppress(ValueError, TypeError):
        change()


def _single(rng: np.random.Generator, message: Any, field: Any) -> None:
    if field.message_type is not None or happens(rng, 0.1):
        message.ClearField(field.name)
    else:
        value = _value(rng, field, getattr(message, field.name))
        _set(lambda: setattr(message, field.name, value))


def _repeated(rng: np.random.Generator, message: Any, field: Any) -> None:
    values = getattr(message, field.name)
    kind = choose(rng, ["remove", "again", "move", "change", "change", "change"])
    if not values:
        if _is_map(field):
            return
        if field.message_type is not None:
            values.add()
        else:
            _set(lambda: values.append(_value(rng, field, None)))
        return
    if _is_map(field):
        del values[choose(rng, sorted(values))]
        return
    k = int(rng.integers(len(values)))
    if kind == "remove" or (field.message_type is not None and kind == "change"):
        del values[k]
    elif kind == "again":
        values.extend([values[k]])
    elif kind == "move":
        others = list(values)
        others.insert(int(rng.integers(len(values))), others.pop(k))
        copy = type(message)()
        getattr(copy, field.name).extend(others)
        message.ClearField(field.name)
        message.MergeFrom(copy)
    else:
        value = _value(rng, field, values[k])
        _set(lambda: values.__setitem__(k, value))
