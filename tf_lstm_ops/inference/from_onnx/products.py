"""Operators with matrices and kernels of weights."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import file, graph, layers
from tf_lstm_ops.inference.from_onnx.values import (
    Array,
    Call,
    Filled,
    Length,
    Operand,
    Operator,
    Squares,
    sum_of,
)
from tf_lstm_ops.inference.layers.pooling import pooling
from tf_lstm_ops.inference.tracing.axes import (
    Factor,
    Product,
    Traced,
    derived,
    position,
    real,
    rows_of,
    settled,
    with_groups,
    with_last,
)
from tf_lstm_ops.onnx_graph.attributes import short


def dense(x: Traced, kernel: Array, bias: Array | None) -> Traced:
    """The product of the last axis with weights.

    Args:
      x: the array.
      kernel: [features, units].
      bias: [units], or None.

    Returns:
      The array.

    Raises:
      Refused: the array has other features.
    """
    x = with_last(x)
    if x.features != kernel.shape[0]:
        refuse(f"its weights take {kernel.shape[0]} features, and its input has {x.features}")
    features = (Factor(kernel.shape[1]),)
    value = layers.Dense(kernel, bias)(x.value)
    return Traced(value, (*x.groups[:-1], features), (*x.axes[:-1], features))


def _of_features(constant: Array, features: int) -> Array:
    """A constant for each feature."""
    if constant.size not in (1, features) or constant.size != max(constant.shape[-1:], default=1):
        refuse(f"a constant has the shape {[*constant.shape]}, not [{features}]")
    return np.broadcast_to(constant.ravel(), [features])


def _matmul(call: Call) -> list[Operand]:
    first = call.operand(0)
    if isinstance(first, Filled) and first.sizes and not first.value.any():  # states of zeros
        weights = call.constant(1, "second operand")
        if weights.ndim == 2:
            return [Filled(first.value, (*first.sizes[:-1], weights.shape[1]))]
    if not isinstance(call.operand(0), Traced):
        refuse("its first operand is a constant; a session multiplies features by weights")
    weights = call.constant(1, "second operand")
    x = call.traced()
    if weights.ndim != 2 or x.rank < 2:
        refuse(f"its weights have {weights.ndim} axes, not 2")
    return [dense(x, weights, None)]


def _gemm(call: Call) -> list[Operand]:
    x = call.traced()
    kernel = call.constant(1, "matrix").astype(np.float64)
    if call.flag("transA") or x.rank != 2 or kernel.ndim != 2:
        refuse("its input is transposed, or its operands have not 2 axes")
    kernel = kernel.T if call.flag("transB") else kernel
    bias, beta = None, float(call.attributes["beta"])
    if call.operand(2) is not None:
        bias = _of_features(call.constant(2, "bias").astype(np.float64), kernel.shape[1]) * beta
    return [dense(x, kernel * float(call.attributes["alpha"]), bias)]


# Windows over time.


def _window_attributes(call: Call, axes: int) -> dict[str, list[int]]:
    """The attributes of windows, with their defaults, for each axis behind the channels."""
    given = call.attributes
    found = {
        "strides": [*given.get("strides", [1] * axes)],
        "dilations": [*given.get("dilations", [1] * axes)],
        "pads": [*given.get("pads", [0] * 2 * axes)],
    }
    if any(len(found[name]) != count for name, count in zip(found, (axes, axes, 2 * axes))):  # noqa: B905
        refuse("its attributes have another number of axes than its input")
    return found


def _of_time(call: Call, x: Traced, kernel: list[int]) -> tuple[int, dict[str, Any], Traced]:
    """The axis of time, the arguments of windows along it, and x as rows, time, channels.

    Axes of size 1 with a window of one element, as of a Conv1D that is written as a Conv2D, do
    nothing.
    """
    if x.rank < 3 or len(kernel) != x.rank - 2:
        refuse(f"its input has {x.rank} axes, and its window {len(kernel)}")
    found = _window_attributes(call, len(kernel))
    places = [k for k, size in enumerate(kernel) if size > 1 or real(x.axes[k + 2])]
    if len(places) > 1:
        refuse("its windows are over two axes; a session has windows over time")
    (place,) = places or [len(kernel) - 1]
    for k in range(len(kernel)):
        if k != place and (found["pads"][k] or found["pads"][len(kernel) + k]):
            refuse("it pads two axes")
    arguments = {
        "size": kernel[place],
        "strides": found["strides"][place],
        "dilation_rate": found["dilations"][place],
        "padding": (found["pads"][place], found["pads"][len(kernel) + place]),
    }
    arguments["padding"] = _padding(call, arguments)
    return place + 2, arguments, with_groups(x, (*rows_of(x), x.axes[place + 2], x.axes[1]))


def _padding(call: Call, windows: Mapping[str, Any]) -> Any:
    """The padding of windows as their argument."""
    automatic = call.attributes["auto_pad"]
    more = (windows["size"] - 1) * windows["dilation_rate"]
    if automatic == "SAME_LOWER" and windows["strides"] == 1:
        return (more + 1) // 2, more // 2
    known = {"NOTSET": windows["padding"], "VALID": "valid", "SAME_UPPER": "same"}
    if automatic not in known:
        refuse(f"its auto_pad is {short(automatic)} with strides")
    return known[automatic]


def _padded_by(axis: int, windows: dict[str, Any], x: Traced) -> tuple[int, dict[str, Any], Traced]:
    """The arguments of a convolution that adds the zeros of a Pad before it itself.

    So a causal one can stream.
    """
    made: Any = x.value.node
    if not isinstance(made, graph.Node) or made.layer.kind != file.PADDING:
        return axis, windows, x
    before, behind, reflects = made.layer.ints
    padding = (0, 0) if windows["padding"] == "valid" else windows["padding"]
    if reflects or min(before, behind) < 0 or isinstance(padding, str):
        return axis, windows, x
    windows = {**windows, "padding": (before + padding[0], behind + padding[1])}
    time = (derived([x.groups[-2]], lambda steps: steps - before - behind),)
    groups = (*x.groups[:-2], time, x.groups[-1])
    axes = tuple(time if k == axis else product for k, product in enumerate(x.axes))
    source: Any = made.operands[0]
    return axis, windows, Traced(source, groups, axes)


def _steps(steps: int, windows: Mapping[str, Any]) -> int:
    """The number of windows over a number of steps."""
    padding, stride = windows["padding"], windows["strides"]
    if padding == "same":
        return int(-(-steps // stride))
    steps += 0 if padding == "valid" else sum(padding)
    count = (steps - (windows["size"] - 1) * windows["dilation_rate"] - 1) // stride + 1
    if count < 1:
        refuse(f"its windows are longer than the {steps} steps of its input")
    return int(count)


def _over_time(
    x: Traced, axis: int, value: Any, features: Product, windows: Mapping[str, Any]
) -> Traced:
    """The result of windows over time."""
    time: Product = (derived([x.groups[-2]], lambda steps: _steps(steps, windows)),)
    axes = [x.axes[0], features, *x.axes[2:]]
    axes[axis] = time
    return Traced(value, (*x.groups[:-2], time, features), tuple(axes))


def _windowed(layer: layers.Layer, x: Traced) -> Any:
    """The value of windows over the last axis but one."""
    rows = len(x.groups) - 2
    return layer.apply([x.value if rows == 1 else x.value.with_mask(None)], rows)


def _conv(call: Call) -> list[Operand]:
    x, weights = call.traced(), call.constant(1, "kernel")
    axis, windows, x = _padded_by(*_of_time(call, x, [*weights.shape[2:]]))
    units, channels, size = weights.shape[0], weights.shape[1], windows["size"]
    arguments = {name: value for name, value in windows.items() if name != "size"}
    if [*call.attributes.get("kernel_shape", weights.shape[2:])] != [*weights.shape[2:]]:
        refuse(f"its kernel_shape is not that of its kernel, {[*weights.shape[2:]]}")
    bias = None if call.operand(2) is None else call.constant(2, "bias")
    kernel = weights.reshape(units, channels, size).transpose(2, 1, 0)
    groups = int(call.attributes["group"])
    if settled(x.groups[-1]) not in (None, channels * groups):
        refuse(f"its kernel takes {channels * groups} channels, not {settled(x.groups[-1])}")
    layer = layers.Conv1D(kernel, bias, groups=groups, **arguments)
    return [_over_time(x, axis, _windowed(layer, x), (Factor(units),), windows)]


def _pool(layer: Any, call: Call) -> list[Operand]:
    x = call.traced()
    axis, arguments, x = _of_time(call, x, [*call.attributes.get("kernel_shape", ())])
    if call.flag("ceil_mode") or arguments["dilation_rate"] != 1:
        refuse("it has ceil_mode or dilations")
    size, stride, padding = (arguments[name] for name in ("size", "strides", "padding"))
    counts = call.flag("count_include_pad")
    found = pooling(layer, size, stride, padding, counts)
    value = _windowed(layers.Chain(found), x)
    return [_over_time(x, axis, value, x.groups[-1], arguments)]


def _global_pool(layer: Any, call: Call) -> list[Operand]:
    x = call.traced()
    if x.rank < 3:
        refuse(f"its input has {x.rank} axes")
    return [_over_all(x, [*range(2, x.rank)], layer, keeps=True)]


def _over_all(x: Traced, places: list[int], layer: Any, *, keeps: bool) -> Traced:
    """Pooling over all elements of axes."""
    chosen = [k for k in places if real(x.axes[k])]
    axes = [() if k in places else p for k, p in enumerate(x.axes) if keeps or k not in places]
    if not chosen:
        return x.with_axes(axes)
    pooled = tuple(factor for k in chosen for factor in real(x.axes[k]))
    if {*x.groups[0]} & {*pooled}:
        refuse("it pools the batch")
    rest = tuple(f for group in x.groups[1:] for f in group if f not in pooled)
    x = with_groups(x, (x.groups[0], pooled, rest))
    value = layer()(x.value)
    return Traced(value, (x.groups[0], x.groups[2]), tuple(axes))


def _reduce(layer: Any, call: Call) -> list[Operand]:
    x = call.traced()
    given = call.integers(1, "axes")
    does_nothing = call.flag("noop_with_empty_axes")
    keeps = call.flag("keepdims", True)
    if not given and does_nothing:
        return [x]
    places = [position(k, x.rank) for k in given] if given else [*range(x.rank)]
    return [_over_all(x, places, layer, keeps=keeps)]


def _length(is_square: bool, call: Call) -> list[Operand]:
    """The length of rows along one axis, or its square."""
    x: Any = call.operand(0)
    if isinstance(x, Squares):
        x, is_square = (x.arrays[0] if len(x.arrays) == 1 else None), True
    if not isinstance(x, Traced):
        refuse("its operand is not an array of the model's inputs")
    given = call.integers(1, "axes")
    keeps = call.flag("keepdims", True)
    call.flag("noop_with_empty_axes")
    if given is None or len(given) != 1:
        refuse("it is over several axes; a session has the lengths of rows")
    return [Length(x, position(given[0], x.rank), keeps, is_square=is_square)]


def _reduce_sum(call: Call) -> list[Operand]:
    """A sum; of squares the square of a length."""
    if isinstance(call.operand(0), Squares) and len(call.operand(0).arrays) == 1:  # type: ignore[union-attr]
        return _length(True, call)
    squares = call.operand(0)
    if isinstance(squares, Squares):
        call = dataclasses.replace(call, operands=[sum_of(squares), *call.operands[1:]])
    return _reduce(layers.GlobalSumPooling1D, call)


# Normalisation.


def _group_normalization(call: Call) -> list[Operand]:
    """Normalisation of axis 1 over all behind it; or of groups of its elements."""
    x = call.traced()
    scale, offset = call.constant(1, "scale"), call.constant(2, "B")
    if call.node.op_type == "InstanceNormalization":
        groups, minor = x.axes[1], [f for p in x.axes[2:] for f in real(p)]
        time = [f for f in minor if f not in x.groups[-1] or f.size is None]
        if len(time) == len(minor) > 1 or not time:
            time = [*real(x.axes[-1])]
        features = (*groups, *(f for f in minor if f not in time))
        count = settled(groups)
    else:
        features, time = x.axes[1], [f for p in x.axes[2:] for f in real(p)]
        count = int(call.attributes["num_groups"])
        if call.attributes.get("stash_type", 1) != 1:  # it began with opset 21
            refuse("its stash_type is not 1")
    axes = x.axes
    x = with_groups(x, (x.axes[0], tuple(time), features))
    size = x.features
    if count is None or size % count:
        refuse("the number of its groups is not known, or no divisor of its channels")
    gamma, beta = (_of_channels(array, size, count) for array in (scale, offset))
    epsilon = float(call.attributes["epsilon"])
    layer = layers.GroupNormalization(size, count, gamma, beta, epsilon)
    return [dataclasses.replace(x.with_value(layer(x.value)), axes=axes)]


def _of_channels(array: Array, size: int, groups: int) -> Array:
    """A number for each channel, of one for each channel or group."""
    if array.shape not in ((size,), (groups,)):
        refuse(f"a constant has the shape {[*array.shape]}, not [{size}] or [{groups}]")
    return np.repeat(array, size // array.size)


def _batch_normalization(call: Call) -> list[Operand]:
    if call.flag("training_mode") or any(call.used[1:]):
        refuse("it is that of training")
    if not call.flag("spatial", True):
        refuse("it has a mean for each step")
    x = with_last(call.traced(), 1)
    scale, offset, mean, variance = (
        call.constant(k + 1, what) for k, what in enumerate(("scale", "B", "mean", "variance"))
    )
    epsilon = float(call.attributes["epsilon"])
    layer = layers.BatchNormalization(
        gamma=scale, beta=offset, mean=mean, variance=variance, epsilon=epsilon
    )
    return [x.with_value(layer(x.value))]


def _layer_normalization(call: Call) -> list[Operand]:
    x = call.traced()
    axis = call.axis(x.rank)
    if any(map(real, x.axes[axis + 1 :])) or any(call.used[1:]):
        refuse("it normalises several axes, or its further outputs are read")
    x = with_last(x, axis)
    offset = None if call.operand(2) is None else _of_features(call.constant(2, "B"), x.features)
    scale = _of_features(call.constant(1, "scale"), x.features)
    epsilon = float(call.attributes["epsilon"])
    layer = layers.LayerNormalization(x.features, scale, offset, epsilon)
    return [x.with_value(layer(x.value))]


def _of(function: Any, layer: type[layers.Layer], ignored: tuple[str, ...] = ()) -> Operator:
    return Operator(functools.partial(function, layer), ignored=ignored)


OPERATORS = {
    "MatMul": Operator(_matmul),
    "Gemm": Operator(_gemm),
    "Conv": Operator(_conv),
    "MaxPool": _of(_pool, layers.MaxPooling1D, ignored=("storage_order",)),
    "AveragePool": _of(_pool, layers.AveragePooling1D),
    "GlobalMaxPool": _of(_global_pool, layers.GlobalMaxPooling1D),
    "GlobalAveragePool": _of(_global_pool, layers.GlobalAveragePooling1D),
    "ReduceSum": Operator(_reduce_sum, of_squares=True),
    "ReduceL2": Operator(functools.partial(_length, False)),
    "ReduceSumSquare": Operator(functools.partial(_length, True)),
    "ReduceMax": _of(_reduce, layers.GlobalMaxPooling1D),
    "ReduceMean": _of(_reduce, layers.GlobalAveragePooling1D),
    "BatchNormalization": Operator(_batch_normalization, ignored=("momentum",)),
    "InstanceNormalization": Operator(_group_normalization),
    "GroupNormalization": Operator(_group_normalization),
    "LayerNormalization": Operator(_layer_normalization, ignored=("stash_type",)),
}
