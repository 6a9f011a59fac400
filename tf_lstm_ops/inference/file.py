"""The file of a session, as the reference page "The file of a session" describes it."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tf_lstm_ops import _activations, _cells
from tf_lstm_ops.inference import quantization

Array = npt.NDArray[Any]

MAGIC = b"\x89TLOS\r\n\x1a"
ALIGNMENT = 64  # bytes, of the file in memory and of each array

# The values of the fields of a record.
RECURRENT, DENSE, ACTIVATION, MASKING, EMBEDDING, CONVOLUTION, DEPTHWISE = range(1, 8)
AFFINE, NORMALIZATION, POOLING, GLOBAL_POOLING, RESHAPE, TRANSPOSITION = range(8, 14)
REPETITION, UPSAMPLING, PADDING, CONCATENATION, COMBINATION, PAIRS, MASKS = range(14, 21)
SLICE, MASK_OF_LENGTHS = 21, 22
FORWARDS, BACKWARDS, BOTH = 1, 2, 3
MERGE_MODES = {"concat": 1, "sum": 2, "mul": 3, "ave": 4}
RETURNS_SEQUENCE, ZERO_WHERE_MASKED, CARRIES_NORMALIZED_STATE, ORDER_OF_COMPUTATION = 1, 2, 4, 8
RETURNS_STATE, RETURNS_MASK = 16, 32
ALL_FUNCTIONS = {each.name: each.number for each in _activations.TABLE}
FUNCTIONS = {name: ALL_FUNCTIONS[name] for name in _activations.OF_CELLS}
DENSE_FUNCTIONS = {**FUNCTIONS, "softmax": ALL_FUNCTIONS["softmax"]}  # those of version 1
ARRAYS = (
    *("kernel", "recurrent_kernel", "bias", "recurrent_bias", "peephole", "projection"),
    *("input_gamma", "recurrent_gamma", "state_gamma", "state_beta"),
)

_FUNCTION_NUMBERS = "functions"  # an array of cells that have no layer normalisation
_INDICES = {name: index for index, name in enumerate(ARRAYS)}
_INDICES[_FUNCTION_NUMBERS] = _INDICES["input_gamma"]

# Their indices are the field `weights`.
WEIGHT_TYPES = ("float32", "bfloat16_storage", "int8", "bfloat16")
TYPED_ARRAYS = {  # by kind, those that have this type
    RECURRENT: ("kernel", "recurrent_kernel", "projection"),
    **dict.fromkeys((DENSE, EMBEDDING, CONVOLUTION), ("kernel",)),
}

_HEADER = struct.Struct("<8sIIQQ32x")
_HEADER_2 = struct.Struct("<8sIIQ5I20x")
_INPUT = struct.Struct("<2I6qI4x64s")
_OUTPUT = struct.Struct("<I60x64s")
_RECORD = struct.Struct("<8I3Q2d20Qd2Q")
_NODE = struct.Struct("<3I4x8q4d16x")  # behind a record
assert _HEADER.size == _HEADER_2.size == 64 and _RECORD.size == 256
assert _INPUT.size == _OUTPUT.size == 128 and _RECORD.size + _NODE.size == 384
_ABSENT = 0xFFFFFFFF
NAME_BYTES = 63
MAX_SIZE = 2**54  # of an array, in elements
_FLOAT32, _INT32 = 0, 1
SINGLE, LIST, DICTIONARY = 0, 1, 2  # what a call takes and returns
_MOST_LAYERS_1 = 1024  # of version 1


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
    """A layer as its record describes it.

    Attributes:
      name: for messages; it is not in the file.
      kind, cell, directions, merge, activation, recurrent_activation, flags, units, hidden_size,
        number, epsilon, proj_clip, input_size, weights: the fields of the record.
      arrays: for each direction the arrays by the names of `ARRAYS`, float32; and "functions" of
        the first one, float32 [8].
      initial: h [directions, P] and, of an LSTM, c [directions, H] at the start, float32; None:
        zeros.
      ints, numbers: the fields of the record of a node.
    """

    name: str
    kind: int
    input_size: int = 0
    units: int = 0
    hidden_size: int = 0
    cell: int = 0
    directions: int = 0
    merge: int = 0
    activation: int = 0
    recurrent_activation: int = 0
    flags: int = 0
    number: float = 0.0
    epsilon: float = 0.0
    proj_clip: float = 0.0
    weights: int = 0
    arrays: Sequence[Mapping[str, Array]] = ()
    initial: Sequence[Array | None] = ()
    ints: Sequence[int] = ()
    numbers: Sequence[float] = ()


@dataclasses.dataclass(frozen=True)
class Input:
    """An input of a graph.

    Attributes:
      name: may be empty.
      dtype: "float32" or "int32".
      dims: the sizes of the axes behind the batch; None: any.
      batch: the size of the batch; None: any.
      is_whole: whether a call has all steps of the sequence, so that there is no stream.
    """

    name: str
    dtype: str
    dims: tuple[int | None, ...]
    batch: int | None = None
    is_whole: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """A node of a graph.

    Attributes:
      layer: its record.
      operands: the numbers of the values that it reads; None: absent.
      batch_axes: how many axes count as the batch.
    """

    layer: Layer
    operands: tuple[int | None, ...]
    batch_axes: int = 1


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """A model as a file describes it.

    Attributes:
      inputs: with n of them, values 0 to n - 1 are the inputs, n to 2 n - 1 their masks.
      nodes: in the order of computation. Their outputs are the next values.
      outputs: a name and a value each.
      input_structure: SINGLE, LIST or DICTIONARY.
      output_structure: likewise.
    """

    inputs: Sequence[Input]
    nodes: Sequence[Node]
    outputs: Sequence[tuple[str, int]]
    input_structure: int = SINGLE
    output_structure: int = SINGLE


@dataclasses.dataclass(frozen=True)
class Summary:
    """What the library does not say of a file.

    Attributes:
      layers: the number of layers.
      input_structure: what a call takes: 0 one array, 1 a list, 2 a dictionary.
      output_structure: what a call returns, likewise.
    """

    layers: int
    input_structure: int = 0
    output_structure: int = 0


def _aligned(size: int) -> Array:
    """Makes an array whose memory begins at a multiple of `ALIGNMENT`."""
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def write(graph: Graph) -> Array:
    """Writes the bytes of a file, of version 1 where it can express the graph.

    Args:
      graph: the model.

    Returns:
      uint8 [file_size], aligned to 64 bytes.

    Raises:
      ValueError: a name is longer than 63 bytes, or a weight that becomes int8 is not finite.
    """
    chain = _chain(graph)
    if chain is not None:
        return _written(_version_1_header(*chain), b"", [(layer, b"") for layer in chain[1]])
    operands: list[int] = []
    nodes = []
    for node in graph.nodes:
        nodes.append((node.layer, _node_fields(node, len(operands))))
        operands += [_ABSENT if operand is None else operand for operand in node.operands]

    def header(file_size: int) -> bytes:
        return _HEADER_2.pack(
            *(MAGIC, 2, len(graph.nodes), file_size, len(graph.inputs), len(graph.outputs)),
            *(len(operands), graph.input_structure, graph.output_structure),
        )

    table = struct.pack(f"<{len(operands)}I", *operands)
    tables = b"".join(
        (
            *map(_input_record, graph.inputs),
            *(_OUTPUT.pack(value, _name_bytes(name)) for name, value in graph.outputs),
            table + bytes(_padded(len(table)) - len(table)),
        )
    )
    return _written(header, tables, nodes)


def _chain(graph: Graph) -> tuple[int, list[Layer]] | None:
    """The input size and the layers of a graph that version 1 can express, else None."""
    given = graph.inputs[0]
    if len(graph.inputs) > 1 or graph.input_structure or graph.output_structure:
        return None
    if len(graph.nodes) > _MOST_LAYERS_1:
        return None
    if given.dtype != "float32" or len(given.dims) != 2 or given.dims[0] is not None:
        return None
    input_size = given.dims[1]
    if input_size is None or given.batch is not None or given.is_whole:
        return None
    size: int = input_size
    x, mask, next_value = 0, 1, 2
    layers = []
    for node in graph.nodes:
        layer = node.layer
        is_plain = layer.kind in (DENSE, ACTIVATION)  # a TimeDistributed one computes the same
        reads = (x, mask) if layer.kind == RECURRENT else (x,)
        if (
            layer.kind > MASKING
            or node.operands != reads
            or layer.flags & RETURNS_STATE
            or layer.weights
            or (not is_plain and node.batch_axes > 1)
            or layer.activation > DENSE_FUNCTIONS["softmax"]
            or (layer.kind == RECURRENT and _is_of_version_2(layer))
        ):
            return None
        if layer.kind in (ACTIVATION, MASKING):
            layer = dataclasses.replace(layer, input_size=size, units=size, hidden_size=size)
        x, next_value = next_value, next_value + 1
        if layer.kind == MASKING:
            mask, next_value = next_value, next_value + 1
        size = layer.hidden_size * (2 if layer.merge == MERGE_MODES["concat"] else 1)
        layers.append(layer)
    return (input_size, layers) if [value for _, value in graph.outputs] == [x] else None


def _is_of_version_2(layer: Layer) -> bool:
    """Whether a recurrent layer has a function, a number or a state that version 1 lacks."""
    functions = (layer.activation, layer.recurrent_activation)
    is_plain = layer.cell == _cells.SIMPLE_RNN.number
    known = (
        [FUNCTIONS[name] for name in _activations.OF_PLAIN_RNN] if is_plain else FUNCTIONS.values()
    )
    has_more = (
        any(state is not None for state in layer.initial)
        or any(layer.ints)
        or _FUNCTION_NUMBERS in layer.arrays[0]
    )
    return has_more or functions[0] not in known or functions[1] not in FUNCTIONS.values()


def _version_1_header(input_size: int, layers: Sequence[Layer]) -> Callable[[int], bytes]:
    return lambda file_size: _HEADER.pack(MAGIC, 1, len(layers), file_size, input_size)


def _written(
    header: Callable[[int], bytes], tables: bytes, records: Sequence[tuple[Layer, bytes]]
) -> Array:
    """The bytes of a file of tables, and of records with what follows each."""
    size = sum(_RECORD.size + len(rest) for _, rest in records)
    offset = _padded(_HEADER.size + len(tables) + size)
    places: list[tuple[int, Array]] = []
    parts = [tables]
    for layer, rest in records:
        offsets = [0] * (2 * len(ARRAYS))
        initial = [0, 0]
        for direction, index, array in _arrays(layer):
            offsets[direction * len(ARRAYS) + index] = offset
            places.append((offset, array))
            offset = _padded(offset + array.nbytes)
        for k, state in enumerate(layer.initial):
            if state is not None:
                places.append((offset, np.ascontiguousarray(state, "<f4")))
                initial[k], offset = offset, _padded(offset + places[-1][1].nbytes)
        parts += [_record(layer, offsets, initial), rest]
    content = _aligned(offset)
    start = np.frombuffer(b"".join((header(offset), *parts)), np.uint8)
    content[: start.size] = start
    for place, array in places:
        content[place : place + array.nbytes] = array.reshape(-1).view(np.uint8)
    return content


def _input_record(each: Input) -> bytes:
    dims = [-1 if size is None else size for size in each.dims]
    sizes = (*dims, *(0,) * (5 - len(dims)), each.batch or 0)
    kind = _INT32 if each.dtype == "int32" else _FLOAT32
    return _INPUT.pack(kind, 1 + len(dims), *sizes, each.is_whole, _name_bytes(each.name))


def _name_bytes(name: str) -> bytes:
    content = name.encode()
    if len(content) > NAME_BYTES or b"\0" in content:
        raise ValueError(
            f"the name of an input or output must have at most {NAME_BYTES} bytes in UTF-8 and no "
            f"zeros. Received: {name!r}"
        )
    return content


def _node_fields(node: Node, first_operand: int) -> bytes:
    ints, numbers = node.layer.ints, node.layer.numbers
    fields = (*ints, *(0,) * (8 - len(ints)), *numbers, *(0.0,) * (4 - len(numbers)))
    try:
        return _NODE.pack(first_operand, len(node.operands), node.batch_axes, *fields)
    except struct.error as error:
        raise ValueError(f"layer {node.layer.name} has too large a size: {[*ints]}") from error


def _padded(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _arrays(layer: Layer) -> Iterator[tuple[int, int, Array]]:
    """The direction, the index and the contiguous little-endian values of each array."""
    for direction, arrays in enumerate(layer.arrays):
        for name, array in arrays.items():
            values = np.ascontiguousarray(array, np.float32)
            if layer.weights and name in TYPED_ARRAYS[layer.kind]:
                yield direction, _INDICES[name], _typed(layer, name, values)
            else:
                yield direction, _INDICES[name], values.astype("<f4", copy=False)


def _typed(layer: Layer, name: str, values: Array) -> Array:
    """The values of an array in the type of the layer's weights."""
    if WEIGHT_TYPES[layer.weights] != "int8":
        return quantization.bfloat16(values).astype("<u2", copy=False)
    if not np.isfinite(values).all():
        raise ValueError(
            f"layer {layer.name}: {name} must be finite to become int8. Received: NaN or infinity"
        )
    return quantization.int8_bytes(values, by_row=layer.kind == EMBEDDING)


def _record(layer: Layer, offsets: Sequence[int], initial: Sequence[int]) -> bytes:
    return _RECORD.pack(
        *(layer.kind, layer.cell, layer.directions, layer.merge),
        *(layer.activation, layer.recurrent_activation, layer.flags, layer.weights),
        *(layer.input_size, layer.units, layer.hidden_size),
        *(layer.number, layer.epsilon, *offsets, layer.proj_clip, *initial),
    )


def summary(content: Array) -> Summary:
    """Reads the header of a file.

    Args:
      content: uint8, the bytes of a file that the library has accepted.

    Returns:
      The summary.
    """
    _, version, count, *_ = _HEADER.unpack_from(content.data)
    if version == 1:
        return Summary(count)
    *_, inputs, outputs = _HEADER_2.unpack_from(content.data)
    return Summary(count, inputs, outputs)


def records(content: Array) -> list[Layer]:
    """Reads the records of the layers of a file.

    Args:
      content: uint8, the bytes of a file that the library has accepted.

    Returns:
      The layers in the order of the file, without names and arrays.
    """
    _, version, count, *_ = _HEADER.unpack_from(content.data)
    start, size = _HEADER.size, _RECORD.size
    if version > 1:
        *_, inputs, outputs, operands, _, _ = _HEADER_2.unpack_from(content.data)
        start += inputs * _INPUT.size + outputs * _OUTPUT.size + _padded(4 * operands)
        size += _NODE.size
    return [_layer(content, start + k * size, version > 1) for k in range(count)]


def _layer(content: Array, start: int, is_node: bool) -> Layer:
    """The layer whose record begins at `start`."""
    *fields, number, epsilon = _RECORD.unpack_from(content.data, start)[:13]
    names = ("kind", "cell", "directions", "merge", "activation", "recurrent_activation", "flags")
    ints = _NODE.unpack_from(content.data, start + _RECORD.size)[3:11] if is_node else ()
    sizes = ("weights", "input_size", "units", "hidden_size")
    named = dict(zip((*names, *sizes), fields, strict=True))
    return Layer("", number=number, epsilon=epsilon, ints=ints, **named)
