"""The file of a session, as the reference page "The file of a session" describes it."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

MAGIC = b"\x89TLOS\r\n\x1a"
VERSION = 1
ALIGNMENT = 64  # bytes, of the file in memory and of each array

# The values of the fields of a record.
RECURRENT, DENSE, ACTIVATION, MASKING = 1, 2, 3, 4
LSTM, GRU, RESET_BEFORE_GRU, LAYER_NORM_LSTM, LAYER_NORM_GRU, SIMPLE_RNN = 1, 2, 3, 4, 5, 6
FORWARDS, BACKWARDS, BOTH = 1, 2, 3
MERGE_MODES = {"concat": 1, "sum": 2, "mul": 3, "ave": 4}
RETURNS_SEQUENCE, ZERO_WHERE_MASKED, CARRIES_NORMALIZED_STATE, ORDER_OF_COMPUTATION = 1, 2, 4, 8
_NAMES = (
    *("linear", "relu", "tanh", "sigmoid", "hard_sigmoid", "hard_tanh", "softsign", "elu"),
    *("leaky_relu", "silu", "gelu"),
)
FUNCTIONS = {name: number for number, name in enumerate(_NAMES)}
DENSE_FUNCTIONS = {**FUNCTIONS, "softmax": 16}
ARRAYS = (
    *("kernel", "recurrent_kernel", "bias", "recurrent_bias", "peephole", "projection"),
    *("input_gamma", "recurrent_gamma", "state_gamma", "state_beta"),
)

_HEADER = struct.Struct("<8sIIQQ32x")
_STRUCTURES, _STRUCTURES_AT = struct.Struct("<II"), 36  # of version 2
_RECORD = struct.Struct("<8I3Q2d20Qd16x")
assert _HEADER.size == 64 and _RECORD.size == 256


@dataclasses.dataclass(frozen=True, eq=False)
class Layer:
    """A layer as its record describes it.

    Attributes:
      name: for messages; it is not in the file.
      kind, cell, directions, merge, activation, recurrent_activation, flags, units, hidden_size,
        number, epsilon, proj_clip: the fields of the record.
      input_size: the field of the record; None: that of the preceding layer's output.
      arrays: for each direction the arrays by the names of `ARRAYS`.
    """

    name: str
    kind: int
    input_size: int | None = None
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
    arrays: Sequence[Mapping[str, Array]] = ()

    @property
    def output_size(self) -> int:
        """The number of features of the output."""
        return self.hidden_size * (2 if self.merge == MERGE_MODES["concat"] else 1)

    @property
    def is_backwards(self) -> bool:
        """Whether it reads the sequence backwards, at least in one direction."""
        return self.kind == RECURRENT and self.directions != FORWARDS


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


def aligned(size: int) -> Array:
    """Makes an array whose memory begins at a multiple of `ALIGNMENT`.

    Args:
      size: bytes.

    Returns:
      uint8 [size], zero.
    """
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def write(layers: Sequence[Layer]) -> Array:
    """Writes the bytes of a file.

    Args:
      layers: in the order in which data go through them. All sizes are set.

    Returns:
      uint8 [file_size], aligned to 64 bytes.
    """
    assert layers and layers[0].input_size is not None
    offset = _padded(_HEADER.size + _RECORD.size * len(layers))
    places: list[tuple[int, Array]] = []
    records = []
    for layer in layers:
        offsets = [0] * (2 * len(ARRAYS))
        for direction, index, array in _arrays(layer):
            offsets[direction * len(ARRAYS) + index] = offset
            places.append((offset, array))
            offset = _padded(offset + array.nbytes)
        records.append(_record(layer, offsets))
    header = _HEADER.pack(MAGIC, VERSION, len(layers), offset, layers[0].input_size)
    content = aligned(offset)
    start = np.frombuffer(b"".join((header, *records)), np.uint8)
    content[: start.size] = start
    for place, array in places:
        content[place : place + array.nbytes] = array.reshape(-1).view(np.uint8)
    return content


def _padded(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _arrays(layer: Layer) -> Iterator[tuple[int, int, Array]]:
    """The direction, the index and the contiguous little-endian values of each array."""
    for direction, arrays in enumerate(layer.arrays):
        for name, array in arrays.items():
            yield direction, ARRAYS.index(name), np.ascontiguousarray(array, "<f4")


def _record(layer: Layer, offsets: Sequence[int]) -> bytes:
    return _RECORD.pack(
        *(layer.kind, layer.cell, layer.directions, layer.merge),
        *(layer.activation, layer.recurrent_activation, layer.flags, 0),
        *(layer.input_size, layer.units, layer.hidden_size),
        *(layer.number, layer.epsilon, *offsets, layer.proj_clip),
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
    return Summary(count, *_STRUCTURES.unpack_from(content.data, _STRUCTURES_AT))
