"""A writer of session files for tests, from docs/reference/session_file.md.

`write` writes version 1, `write_graph` version 2. They check nothing, so that tests can write wrong
files. They need NumPy only.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

MAGIC = bytes([0x89, 0x54, 0x4C, 0x4F, 0x53, 0x0D, 0x0A, 0x1A])
HEADER = struct.Struct("<8sIIQQ32s")
RECORD = struct.Struct("<8I3Q2d20Qd16s")
HEADER_2 = struct.Struct("<8sIIQ5I20s")
INPUT = struct.Struct("<2I5q16s64s")
OUTPUT = struct.Struct("<I60s64s")
NODE = struct.Struct("<4I8q4d16s")  # behind the record of a layer
ALIGNMENT = 64

RECURRENT, DENSE, ACTIVATION, MASKING, EMBEDDING, CONVOLUTION, DEPTHWISE = range(1, 8)
SCALE, NORMALIZATION, POOLING, GLOBAL_POOLING, RESHAPE, TRANSPOSITION = range(8, 14)
REPETITION, UPSAMPLING, PADDING, CONCATENATION, COMBINATION, PAIRS, MASKS = range(14, 21)
SLICE = 21
ABSENT = 0xFFFFFFFF
FLOATS, INTS = 0, 1
LSTM, GRU, GRU_RESET_BEFORE, LAYER_NORM_LSTM, LAYER_NORM_GRU, SIMPLE_RNN = 1, 2, 3, 4, 5, 6
FORWARDS, BACKWARDS, BOTH = 1, 2, 3
CONCATENATE, SUM, PRODUCT, AVERAGE = 1, 2, 3, 4
SEQUENCE, ZERO_OUTPUT, CARRIES_NORMALIZED, IN_ORDER, STATES, MAKES_MASK = 1, 2, 4, 8, 16, 32
RECURRENT_FUNCTIONS = (
    *("linear", "relu", "tanh", "sigmoid", "hard_sigmoid", "hard_tanh", "softsign", "elu"),
    *("leaky_relu", "silu", "gelu"),
)
_NAMES_2 = (
    *("relu with numbers", "elu with a number", "celu", "selu", "softplus", "squareplus"),
    *("soft_shrink", "hard_shrink", "tanh_shrink", "threshold", "sparse_plus", "sparse_sigmoid"),
    *("exponential", "hard_silu", "mish", "log_sigmoid", "log_softmax", "gelu by tanh", "prelu"),
)
FUNCTIONS = {name: number for number, name in enumerate(RECURRENT_FUNCTIONS)} | {"softmax": 16}
FUNCTIONS_2 = {name: number for number, name in enumerate(_NAMES_2, 17)}
ARRAYS = (
    *("kernel", "recurrent_kernel", "bias", "recurrent_bias", "peephole"),
    *("projection", "input_gamma", "recurrent_gamma", "state_gamma", "state_beta"),
)
WEIGHTS = FLOAT32, BFLOAT16, INT8, BFLOAT16_PRODUCTS = 0, 1, 2, 3
BFLOAT16S = BFLOAT16, BFLOAT16_PRODUCTS
TYPED = {  # arrays of the type of the weights
    RECURRENT: ("kernel", "recurrent_kernel", "projection"),
    **dict.fromkeys((DENSE, EMBEDDING, CONVOLUTION), ("kernel",)),
}


@dataclass
class Layer:
    """A record. `arrays` has a dictionary by the names in ARRAYS for each direction.

    `weights` is the type of the arrays in `TYPED` in the file. Here they are float32.
    """

    kind: int
    input_size: int
    units: int
    cell: int = 0
    directions: int = 0
    merge: int = 0
    activation: str | int = 0
    recurrent_activation: str | int = 0
    flags: int = 0
    hidden_size: int | None = None  # None: `units`
    number: float = 0.0
    epsilon: float = 0.0
    proj_clip: float = 0.0
    weights: int = FLOAT32
    arrays: Sequence[dict[str, np.ndarray]] = field(default_factory=lambda: [{}])


def _number(function: str | int) -> int:
    return (FUNCTIONS | FUNCTIONS_2)[function] if isinstance(function, str) else function


def _record(layer: Layer, offsets: list[int]) -> bytes:
    return RECORD.pack(
        *(layer.kind, layer.cell, layer.directions, layer.merge),
        *(_number(layer.activation), _number(layer.recurrent_activation)),
        *(layer.flags, layer.weights, layer.input_size, layer.units),
        layer.units if layer.hidden_size is None else layer.hidden_size,
        *(layer.number, layer.epsilon, *offsets, layer.proj_clip, bytes(16)),
    )


def _data(layer: Layer, name: str, values: np.ndarray) -> bytes:
    """The bytes of an array, in the type of the layer's weights."""
    values = np.ascontiguousarray(values, "<f4")
    if name not in TYPED.get(layer.kind, ()) or layer.weights == FLOAT32:
        return values.tobytes()
    if layer.weights in BFLOAT16S:
        return _bfloat16(values).tobytes()
    scales, q = _quantized(values, layer.kind)
    return scales.tobytes() + q.tobytes()


def stored(layer: Layer) -> Layer:
    """The layer with weights of float32 that have the values in the file."""
    arrays = [
        {
            name: _value(layer, values) if name in TYPED.get(layer.kind, ()) else values
            for name, values in each.items()
        }
        for each in layer.arrays
    ]
    return replace(layer, weights=FLOAT32, arrays=arrays)


def _value(layer: Layer, values: np.ndarray) -> np.ndarray:
    values = np.ascontiguousarray(values, "<f4")
    if layer.weights in BFLOAT16S:
        return (_bfloat16(values).astype("<u4") << 16).view("<f4")
    if layer.weights == INT8:
        scales, q = _quantized(values, layer.kind)
        return (q * (scales[:, None] if layer.kind == EMBEDDING else scales)).reshape(values.shape)
    return values


def _bfloat16(values: np.ndarray) -> np.ndarray:
    bits = values.view("<u4")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def _quantized(values: np.ndarray, kind: int) -> tuple[np.ndarray, np.ndarray]:
    """The scales, and the integers [depth, columns], one column or row after the other."""
    matrix = values.reshape(-1, values.shape[-1])
    vectors = matrix if kind == EMBEDDING else matrix.T
    scales = np.zeros(len(vectors), "<f4")
    q = np.zeros(vectors.shape, "i1")
    for k, vector in enumerate(vectors):
        if vector.any():
            scales[k] = np.abs(vector).max() / np.float32(127)
            q[k] = np.rint(vector / scales[k])
    return scales, np.ascontiguousarray(q if kind == EMBEDDING else q.T)


class _Arrays:
    """The arrays behind the tables, which end at `at`."""

    def __init__(self, at: int):
        self.at = at
        self.chunks: list[bytes] = []

    def offsets(self, layer: Layer) -> list[int]:
        offsets = [0] * (2 * len(ARRAYS))
        for direction, arrays in enumerate(layer.arrays):
            for name, values in arrays.items():
                offsets[direction * len(ARRAYS) + ARRAYS.index(name)] = self.at
                self.chunks.append(_padded(_data(layer, name, values)))
                self.at += len(self.chunks[-1])
        return offsets


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


def write(layers: Sequence[Layer]) -> bytes:
    """The bytes of a file of version 1."""
    arrays = _Arrays(HEADER.size + RECORD.size * len(layers))
    records = [_record(layer, arrays.offsets(layer)) for layer in layers]
    header = HEADER.pack(MAGIC, 1, len(layers), arrays.at, layers[0].input_size, bytes(32))
    return b"".join([header, *records, *arrays.chunks])


@dataclass
class Input:
    """The record of an input. `dims` are the axes behind the batch; -1: any size."""

    dims: Sequence[int]
    type: int = FLOATS
    name: str = ""


@dataclass
class Node:
    """The record of a node. Operands are numbers of values; None: absent."""

    layer: Layer
    operands: Sequence[int | None]
    batch_axes: int = 1
    ints: Sequence[int] = ()
    numbers: Sequence[float] = ()


@dataclass
class Graph:
    """The tables of a file of version 2. `outputs` are numbers of values."""

    inputs: Sequence[Input]
    nodes: Sequence[Node]
    outputs: Sequence[int]
    output_names: Sequence[str] = ()
    input_structure: int = 0
    output_structure: int = 0


def _node(node: Node, first: int, offsets: list[int]) -> bytes:
    ints, numbers = [*node.ints], [*node.numbers]
    return _record(node.layer, offsets) + NODE.pack(
        *(first, len(node.operands), node.batch_axes, 0),
        *(ints + [0] * (8 - len(ints))),
        *(numbers + [0.0] * (4 - len(numbers))),
        bytes(16),
    )


def _input(record: Input) -> bytes:
    dims = [*record.dims]
    axes = dims + [0] * (5 - len(dims))
    return INPUT.pack(record.type, 1 + len(dims), *axes, bytes(16), record.name.encode())


def write_graph(graph: Graph) -> bytes:
    """The bytes of a file of version 2."""
    operands = [operand for node in graph.nodes for operand in node.operands]
    numbers = [ABSENT if operand is None else operand for operand in operands]
    names = [*graph.output_names] + [""] * (len(graph.outputs) - len(graph.output_names))
    inputs = b"".join(map(_input, graph.inputs))
    outputs = b"".join(
        OUTPUT.pack(value, bytes(60), name.encode())
        for value, name in zip(graph.outputs, names, strict=True)
    )
    tables = inputs + outputs + _padded(struct.pack(f"<{len(numbers)}I", *numbers))
    record_size = RECORD.size + NODE.size
    arrays = _Arrays(HEADER_2.size + len(tables) + record_size * len(graph.nodes))
    records, first = [], 0
    for node in graph.nodes:
        records.append(_node(node, first, arrays.offsets(node.layer)))
        first += len(node.operands)
    header = HEADER_2.pack(
        *(MAGIC, 2, len(graph.nodes), arrays.at, len(graph.inputs), len(graph.outputs)),
        *(len(operands), graph.input_structure, graph.output_structure, bytes(20)),
    )
    return b"".join([header, tables, *records, *arrays.chunks])
