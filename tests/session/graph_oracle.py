"""What a session of version 2 computes, in NumPy with float64, from the graph of session_file.

A mask is None where all steps are valid. Weights have the values in the file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np

from . import chain
from . import session_file as f

Array = np.ndarray


class Int8(np.ndarray):
    """Weights of int8. Rows that are multiplied with them are rounded to 8 bits."""

    def __rmatmul__(self, rows: Array) -> Array:
        steps = np.abs(rows).max(axis=-1, keepdims=True) / 127
        return np.rint(rows / np.where(steps > 0, steps, 1)) * steps @ np.asarray(self)


class BFloat16(np.ndarray):
    """Weights of bfloat16. Rows that are multiplied with them are rounded to bfloat16."""

    def __rmatmul__(self, rows: Array) -> Array:
        rounded = np.asarray(rows, np.float32).astype(ml_dtypes.bfloat16)
        return rounded.astype(np.float64) @ np.asarray(self)


class BFloat16OfGates(BFloat16):
    """Of a GRU with reset_after=False: the last of three parts multiplies r * h in float32."""

    def __getitem__(self, key: Any) -> Array:
        found = super().__getitem__(key)
        is_last = isinstance(key, slice) and 3 * int(key.start or 0) == 2 * len(self)
        return np.asarray(found) if is_last else found


# The most weights of a layer whose rows stay float32 with BFLOAT16_PRODUCTS.
_SMALL = 16383
_ROUNDING = {f.INT8: Int8, f.BFLOAT16_PRODUCTS: BFloat16}


def _kind_of(layer: f.Layer, name: str, kind: type[Array]) -> type[Array]:
    is_gated = layer.kind == f.RECURRENT and layer.cell == f.GRU_RESET_BEFORE
    of_gates = is_gated and name == "recurrent_kernel" and kind is BFloat16
    return BFloat16OfGates if of_gates else kind


def _stored(layer: f.Layer) -> f.Layer:
    """The layer with the weights that the file has."""
    kind = _ROUNDING.get(layer.weights)
    if kind is None or layer.kind == f.EMBEDDING:
        return f.stored(layer)
    typed = [name for name in f.TYPED[layer.kind] if name != "projection" or kind is Int8]
    count = sum(values.size for name, values in layer.arrays[0].items() if name in typed)
    if layer.kind == f.CONVOLUTION:
        count //= layer.input_size // layer.arrays[0]["kernel"].shape[1]  # of a group
    if kind is BFloat16 and count <= _SMALL:
        return f.stored(layer)
    arrays = [
        {
            name: np.asarray(values, np.float64).view(_kind_of(layer, name, kind))
            if name in typed
            else values
            for name, values in each.items()
        }
        for each in f.stored(layer).arrays
    ]
    return replace(layer, arrays=arrays)


def _softmax(z: Array) -> Array:
    powers = np.exp(z - z.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _relu(z: Array, a: float, b: float, c: float) -> Array:
    return np.where(z >= c, np.minimum(z, b) if b > 0 else z, a * (z - c))


def _elu(z: Array, a: float) -> Array:
    return np.where(z > 0, z, a * np.expm1(np.minimum(z, 0)))


def _softplus(z: Array) -> Array:
    return np.logaddexp(z, 0)


def _gelu(z: Array) -> Array:
    return z * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3))) / 2


# Of z, a, b and c.
FUNCTIONS = {
    "relu with numbers": _relu,
    "elu with a number": lambda z, a, b, c: _elu(z, a),
    "celu": lambda z, a, b, c: np.where(z > 0, z, a * np.expm1(np.minimum(z, 0) / a)),
    "selu": lambda z, a, b, c: 1.0507009873554804934193 * _elu(z, 1.6732632423543772848170),
    "softplus": lambda z, a, b, c: _softplus(z),
    "squareplus": lambda z, a, b, c: (z + np.sqrt(z * z + a)) / 2,
    "soft_shrink": lambda z, a, b, c: np.sign(z) * np.maximum(abs(z) - a, 0),
    "hard_shrink": lambda z, a, b, c: np.where(abs(z) > a, z, 0),
    "tanh_shrink": lambda z, a, b, c: z - np.tanh(z),
    "threshold": lambda z, a, b, c: np.where(z > a, z, b),
    "sparse_plus": lambda z, a, b, c: np.where(abs(z) < 1, (z + 1) ** 2 / 4, np.maximum(z, 0)),
    "sparse_sigmoid": lambda z, a, b, c: np.clip((z + 1) / 2, 0, 1),
    "exponential": lambda z, a, b, c: np.exp(z),
    "hard_silu": lambda z, a, b, c: z * np.clip(z / 6 + 0.5, 0, 1),
    "mish": lambda z, a, b, c: z * np.tanh(_softplus(z)),
    "log_sigmoid": lambda z, a, b, c: -_softplus(-z),
    "log_softmax": lambda z, a, b, c: np.log(_softmax(z)),
    "gelu by tanh": lambda z, a, b, c: _gelu(z),
}


def activate(node: f.Node, z: Array) -> Array:
    function = node.layer.activation
    if function in FUNCTIONS:
        # The library rounds the numbers to f32.
        numbers = [float(np.float32(number)) for number in [*node.numbers, 0, 0, 0][:3]]
        return FUNCTIONS[function](z, *numbers)
    return chain.activate(function, z)


def _dense(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    return activate(node, x @ a["kernel"] + a.get("bias", 0.0))


def _activation(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    if node.layer.activation != "prelu":
        return activate(node, x)
    alpha = np.resize(a["kernel"], x.shape)  # it repeats the elements
    return np.where(x > 0, x, alpha * x)


def _masking(node: f.Node, a: dict[str, Array], x: Array) -> tuple[Array, Array]:
    mask = (x != np.float32(node.layer.number)).any(axis=-1)
    return np.where(mask[..., None], x, 0), mask


def _embedding(node: f.Node, a: dict[str, Array], x: Array) -> tuple[Array, Array]:
    assert x.min(initial=0) >= 0 and x.max(initial=0) < node.layer.input_size
    return a["kernel"][x], x != 0


def _windows(x: Array, sizes: Sequence[int], fill: float) -> Array:
    """x [N, T, C] as [N, T', C, k], with `fill` in the padding."""
    window, stride, dilation, is_same, before, behind = sizes
    span = (window - 1) * dilation + 1
    if is_same:
        steps = -(-x.shape[1] // stride)
        padding = max((steps - 1) * stride + span - x.shape[1], 0)
        before, behind = padding // 2, padding - padding // 2
    x = np.pad(x, [(0, 0), (before, behind), (0, 0)], constant_values=fill)
    windows = np.lib.stride_tricks.sliding_window_view(x, span, axis=1)
    return windows[:, ::stride, :, ::dilation]


def _convolution(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    window, stride, dilation, groups, *padding = [*node.ints, 0, 0, 0][:7]
    windows = _windows(x, [window, stride, dilation, *padding], 0)
    parts = [
        part.reshape(*part.shape[:2], -1) @ kernel.swapaxes(0, 1).reshape(-1, kernel.shape[2])
        for part, kernel in zip(
            np.split(windows, groups, axis=2), np.split(a["kernel"], groups, axis=2), strict=True
        )
    ]
    return activate(node, np.concatenate(parts, axis=-1) + a.get("bias", 0.0))


def _depthwise(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    window, stride, dilation, _, *padding = [*node.ints, 0, 0, 0][:7]
    windows = _windows(x, [window, stride, dilation, *padding], 0)
    y = np.einsum("ntck,kcm->ntcm", windows, a["kernel"])
    return activate(node, y.reshape(*y.shape[:2], -1) + a.get("bias", 0.0))


def _scale(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    return x * a["kernel"] + a["bias"]


def _normalization(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    is_rms = [*node.ints, 0][0]
    centered = x if is_rms else x - x.mean(axis=-1, keepdims=True)
    power = (centered**2).mean(axis=-1, keepdims=True)
    y = centered / np.sqrt(power + np.float32(node.layer.epsilon))
    return y * a.get("input_gamma", 1.0) + a.get("bias", 0.0)


def _pooling(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    window, stride, is_same, is_average = [*node.ints, 0, 0][:4]
    fill = np.nan if is_average else -np.inf
    windows = _windows(x, [window, stride, 1, is_same, 0, 0], fill)
    return np.nanmean(windows, axis=-1) if is_average else windows.max(axis=-1)


def _slice(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    axis, start, stop, *rest = node.ints
    part = np.moveaxis(x, axis, 0)[start:stop]
    return np.moveaxis(part[::-1] if any(rest) else part, 0, axis)


def _global_pooling(node: f.Node, a: dict[str, Array], x: Array, mask: Any = None) -> Array:
    mode, keeps_axis = [*node.ints, 0, 0][:2]
    if mode in (2, 3):
        y = x[:, -1 if mode == 2 else 0]
    elif mode == 4:
        y = x.sum(axis=1)
    elif mode == 1:
        valid = np.ones(x.shape[:2]) if mask is None else mask
        y = (x * valid[..., None]).sum(axis=1) / valid.sum(axis=1)[:, None]
    else:
        y = x.max(axis=1)
    return y[:, None] if keeps_axis else y


def _reshape(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    count, *sizes = node.ints
    return x.reshape(len(x), *sizes[:count])


def _transposition(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    count, *axes = node.ints
    return x.transpose(0, *axes[:count])


def _padding(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    before, behind, is_reflection = [*node.ints, 0, 0][:3]
    x = x[:, max(-before, 0) : x.shape[1] - max(-behind, 0)]
    sizes = [(0, 0), (max(before, 0), max(behind, 0)), (0, 0)]
    return np.pad(x, sizes, mode="reflect" if is_reflection else "constant")


def _average(*x: Array) -> Array:
    return sum(x[1:], x[0]) / len(x)


def _reduced(function: Any) -> Any:
    def reduced(*x: Array) -> Array:
        y = x[0]
        for other in x[1:]:
            y = function(y, other)
        return y

    return reduced


COMBINATIONS = [
    *map(_reduced, (np.add, np.subtract, np.multiply)),
    _average,
    *map(_reduced, (np.maximum, np.minimum)),
]


def _pairs(node: f.Node, a: dict[str, Array], x: Array) -> Array:
    first, second = np.split(x, 2, axis=-1)
    is_gate = [*node.ints, 0][0]
    return first / (1 + np.exp(-second)) if is_gate else np.hypot(first, second)


def _masks(node: f.Node, a: dict[str, Array], *masks: Array | None) -> Array | None:
    is_any = [*node.ints, 0][0]
    given = [mask for mask in masks if mask is not None]
    if not given or (is_any and len(given) < len(masks)):
        return None
    return (np.any if is_any else np.all)(given, axis=0)


def _recurrent(node: f.Node, a: dict[str, Array], x: Array, mask: Any = None, *states: Array):
    y, final = chain.recurrent(node.layer, x, mask, states)
    return (y, *final)


# Of the node, its arrays of the first direction in float64, and its operands.
KINDS = {
    f.RECURRENT: _recurrent,
    f.DENSE: _dense,
    f.ACTIVATION: _activation,
    f.MASKING: _masking,
    f.EMBEDDING: _embedding,
    f.CONVOLUTION: _convolution,
    f.DEPTHWISE: _depthwise,
    f.SCALE: _scale,
    f.NORMALIZATION: _normalization,
    f.POOLING: _pooling,
    f.GLOBAL_POOLING: _global_pooling,
    f.RESHAPE: _reshape,
    f.TRANSPOSITION: _transposition,
    f.REPETITION: lambda node, a, x: np.repeat(x[:, None], node.ints[0], axis=1),
    f.UPSAMPLING: lambda node, a, x: np.repeat(x, node.ints[0], axis=1),
    f.PADDING: _padding,
    f.SLICE: _slice,
    f.CONCATENATION: lambda node, a, *x: np.concatenate(x, axis=node.ints[0]),
    f.COMBINATION: lambda node, a, *x: COMBINATIONS[[*node.ints, 0][0]](*x),
    f.PAIRS: _pairs,
    f.MASKS: _masks,
}


def output_count(node: f.Node) -> int:
    """The number of values that a node makes."""
    layer = node.layer
    if layer.kind == f.RECURRENT and layer.flags & f.STATES:
        return 1 + (2 if chain.is_lstm(layer) else 1) * len(layer.arrays)
    return 2 if layer.kind == f.MASKING or layer.flags & f.MAKES_MASK else 1


def _compute(node: f.Node, operands: Sequence[Array | None]) -> list[Array | None]:
    """The values of a node, whose first `batch_axes` axes count as one."""
    [first, *_] = [operand for operand in operands if operand is not None] or [np.zeros((1, 1))]
    batch = first.shape[: node.batch_axes]
    joined = [None if x is None else x.reshape(-1, *x.shape[node.batch_axes :]) for x in operands]
    node = replace(node, layer=_stored(node.layer))
    a = {name: np.asanyarray(values, np.float64) for name, values in node.layer.arrays[0].items()}
    found = KINDS[node.layer.kind](node, a, *joined)
    values = [*found] if isinstance(found, tuple) else [found]
    return [None if y is None else y.reshape(*batch, *y.shape[1:]) for y in values]


def run(graph: f.Graph, inputs: Sequence[Array], masks: Sequence[Array | None] = ()) -> list[Array]:
    """The outputs of a graph."""
    values: list[Array | None] = [
        np.asarray(x, np.int64 if record.type == f.INTS else np.float64)
        for x, record in zip(inputs, graph.inputs, strict=True)
    ]
    given = [*masks] + [None] * (len(inputs) - len(masks))
    values += [None if mask is None else np.asarray(mask, bool) for mask in given]
    for node in graph.nodes:
        operands = [None if k is None else values[k] for k in node.operands]
        values += _compute(node, operands)[: output_count(node)]
    outputs = [values[k] for k in graph.outputs]
    assert all(y is not None for y in outputs)
    return outputs
