"""A writer of session files for tests, from docs/reference/session_file.md.

It checks nothing, so that tests can write wrong files. It needs NumPy only.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

MAGIC = bytes([0x89, 0x54, 0x4C, 0x4F, 0x53, 0x0D, 0x0A, 0x1A])
HEADER = struct.Struct("<8sIIQQ32s")
RECORD = struct.Struct("<8I3Q2d20Qd16s")
ALIGNMENT = 64

RECURRENT, DENSE, ACTIVATION, MASKING = 1, 2, 3, 4
LSTM, GRU, GRU_RESET_BEFORE, LAYER_NORM_LSTM, LAYER_NORM_GRU, SIMPLE_RNN = 1, 2, 3, 4, 5, 6
FORWARDS, BACKWARDS, BOTH = 1, 2, 3
CONCATENATE, SUM, PRODUCT, AVERAGE = 1, 2, 3, 4
SEQUENCE, ZERO_OUTPUT, CARRIES_NORMALIZED, IN_ORDER = 1, 2, 4, 8
_NAMES = (
    *("linear", "relu", "tanh", "sigmoid", "hard_sigmoid", "hard_tanh", "softsign", "elu"),
    *("leaky_relu", "silu", "gelu"),
)
FUNCTIONS = {name: number for number, name in enumerate(_NAMES)} | {"softmax": 16}
ARRAYS = (
    *("kernel", "recurrent_kernel", "bias", "recurrent_bias", "peephole"),
    *("projection", "input_gamma", "recurrent_gamma", "state_gamma", "state_beta"),
)


@dataclass
class Layer:
    """A record. `arrays` has a dictionary by the names in ARRAYS for each direction."""

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
    arrays: Sequence[dict[str, np.ndarray]] = field(default_factory=lambda: [{}])


def _number(function: str | int) -> int:
    return FUNCTIONS[function] if isinstance(function, str) else function


def _record(layer: Layer, offsets: list[int]) -> bytes:
    return RECORD.pack(
        *(layer.kind, layer.cell, layer.directions, layer.merge),
        *(_number(layer.activation), _number(layer.recurrent_activation)),
        *(layer.flags, 0, layer.input_size, layer.units),
        layer.units if layer.hidden_size is None else layer.hidden_size,
        *(layer.number, layer.epsilon, *offsets, layer.proj_clip, bytes(16)),
    )


def write(layers: Sequence[Layer]) -> bytes:
    """The bytes of a file."""
    at = HEADER.size + RECORD.size * len(layers)
    records, chunks = [], []
    for layer in layers:
        offsets = [0] * (2 * len(ARRAYS))
        for direction, arrays in enumerate(layer.arrays):
            for name, values in arrays.items():
                data = np.ascontiguousarray(values, "<f4").tobytes()
                offsets[direction * len(ARRAYS) + ARRAYS.index(name)] = at
                chunks.append(data + bytes(-len(data) % ALIGNMENT))
                at += len(chunks[-1])
        records.append(_record(layer, offsets))
    header = HEADER.pack(MAGIC, 1, len(layers), at, layers[0].input_size, bytes(32))
    return b"".join([header, *records, *chunks])
