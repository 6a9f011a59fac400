"""Operations of ``keras.ops`` and operators of Python in a functional model, such as x - a."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from tf_lstm_ops import _deviation, _keras_private
from tf_lstm_ops._refusal import refuse, require
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_keras.recurrent import computing
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers.activations import GELU, Function, clipped
from tf_lstm_ops.inference.layers.normalization import affine
from tf_lstm_ops.inference.reader import Reader

_FLOAT = "float32"


class _Call(NamedTuple):
    """A call of an operation.

    Attributes:
      arguments: symbolic tensors, lists of them, and constants.
      options: the arguments of the constructor.
      values: of the symbolic tensors, by their ids.
      batch_axes: how many axes count as the batch.
    """

    arguments: Sequence[Any]
    options: Reader
    values: Mapping[int, Value]
    batch_axes: int

    def apply(self, layer: layers.Layer, *tensors: Any) -> Value:
        """A layer of the values of tensors."""
        return self.then(layer, *(self.values[id(tensor)] for tensor in tensors))

    def then(self, layer: layers.Layer, *values: Value) -> Value:
        """A layer of values."""
        given = [value.with_mask(None) for value in values]  # an operation reads no mask
        result: Value = layer.apply(given, self.batch_axes)
        return result.with_mask(None)


_Compute = Callable[[_Call], Value]


def applied(tensor: Any, values: Mapping[int, Value], batch_axes: int) -> list[Value]:
    """The output of an operation.

    Args:
      tensor: the symbolic tensor that it makes.
      values: of the symbolic tensors that it reads, by their ids.
      batch_axes: how many axes count as the batch.

    Returns:
      The value of the tensor, the only one.

    Raises:
      ValueError: a session does not compute the operation.
    """
    operation, tensors, args, kwargs = _keras_private.producer(tensor)
    with computing(operation):
        compute = _OPERATIONS.get(_keras_private.operation_name(operation))
        if compute is None:
            refuse(f"it is {type(operation).__name__}, which a session does not compute")
        if reason := _deviation.of(operation):
            refuse(reason)
        for each in (tensor, *tensors):
            require(each.dtype == _FLOAT, f"it computes with {each.dtype}, not {_FLOAT}")
        given, defaults = _keras_private.options_of_operation(operation)
        options = Reader(given | {name: x for name, x in kwargs.items() if x is not None}, defaults)
        value = compute(_Call(args, options, values, batch_axes))
        options.finish(lambda names: f"it has {', '.join(names)}, which a session does not know")
    return [value]


def _is_tensor(value: Any) -> bool:
    return isinstance(value, keras.KerasTensor)


def _one(call: _Call) -> Any:
    """The only argument, a tensor."""
    (x,) = call.arguments
    return x


def _axis(call: _Call, rank: int) -> int:
    """The option axis, from 1 on."""
    axis = call.options.take("axis")
    require(isinstance(axis, int), f"it has axis={axis}")
    require(axis % rank > 0, "its axis is that of the batch")
    return int(axis % rank)


# Arrays together.


def _merging(layer: Callable[[], layers.Layer]) -> _Compute:
    """Of two arrays, of which neither is a constant."""

    def compute(call: _Call) -> Value:
        first, second = call.arguments
        if not (_is_tensor(first) and _is_tensor(second)):
            refuse("one of its arrays is a constant")
        return _together(layer(), call, first, second)

    return compute


def _together(layer: layers.Layer, call: _Call, first: Any, second: Any) -> Value:
    """A layer of two arrays with the same number of axes."""
    shapes = [tuple(each.shape) for each in (first, second)]
    if len(shapes[0]) != len(shapes[1]) or (shapes[0][0] == 1) != (shapes[1][0] == 1):
        refuse(f"it repeats an array: the shapes are {shapes[0]} and {shapes[1]}")
    return call.apply(layer, first, second)


def _arithmetic(
    layer: Callable[[], layers.Layer] | None, of_constant: Callable[[Any, bool], tuple[Any, Any]]
) -> _Compute:
    """Of two arrays.

    Args:
      layer: of two computed ones; None: a session has none.
      of_constant: scale and offset for a constant, and whether the constant is the second one.
    """

    def compute(call: _Call) -> Value:
        first, second = call.arguments
        if _is_tensor(first) and _is_tensor(second):
            require(layer is not None, "it divides by an array that is computed")
            return _together(layer(), call, first, second)  # type: ignore[misc]
        x, constant = (first, second) if _is_tensor(first) else (second, first)
        scale, offset = of_constant(_along_features(x, constant), x is first)
        return call.apply(affine("operation", scale, offset), x)

    return compute


def _along_features(x: Any, constant: Any) -> Any:
    """A constant for each element of the last axis, which must be known, in float64."""
    size = x.shape[-1]
    require(size is not None, "the size of its last axis is not known")
    array = np.asarray(keras.ops.convert_to_numpy(constant), np.float64)
    of_row = (*[1] * (array.ndim - 1), size) if array.ndim else ()
    if array.ndim > len(x.shape) or (array.size != 1 and array.shape != of_row):
        refuse(f"its constant has the shape {array.shape}, not one number for each of {size}")
    return np.broadcast_to(array.ravel(), [size])


def _sum(constant: Any, is_second: bool) -> tuple[Any, Any]:
    return np.ones_like(constant), constant


def _difference(constant: Any, is_second: bool) -> tuple[Any, Any]:
    one = np.ones_like(constant)
    return (one, -constant) if is_second else (-one, constant)


def _product(constant: Any, is_second: bool) -> tuple[Any, Any]:
    return constant, np.zeros_like(constant)


def _quotient(constant: Any, is_second: bool) -> tuple[Any, Any]:
    require(is_second, "it divides by an array that is computed")
    require(bool(constant.all()), "it divides by zero")
    return 1 / constant, np.zeros_like(constant)


def _negative(call: _Call) -> Value:
    x = _one(call)
    one = _along_features(x, 1)
    return call.apply(affine("operation", -one, 0 * one), x)


def _square(call: _Call) -> Value:
    x = _one(call)
    return call.apply(layers.Multiply(), x, x)


def _concatenate(call: _Call) -> Value:
    arrays = _one(call)
    require(all(map(_is_tensor, arrays)), "one of its arrays is a constant")
    return call.apply(layers.Concatenate(_axis(call, len(arrays[0].shape))), *arrays)


# Functions of elements.


def _function(activation: Function) -> _Compute:
    return lambda call: call.apply(layers.Activation(activation), _one(call))


def _softmax(activation: Function) -> _Compute:
    def compute(call: _Call) -> Value:
        x = _one(call)
        rank = len(x.shape)
        require(_axis(call, rank) == rank - 1, "its axis is not the last one")
        return call.apply(layers.Activation(activation), x)

    return compute


def _elu(call: _Call) -> Value:
    return call.apply(layers.ELU(call.options.take("alpha")), _one(call))


def _leaky_relu(call: _Call) -> Value:
    return call.apply(layers.LeakyReLU(call.options.take("negative_slope")), _one(call))


def _gelu(call: _Call) -> Value:
    form = "tanh" if call.options.take("approximate") else "none"
    return call.apply(layers.Activation(GELU[form]), _one(call))


def _clip(call: _Call) -> Value:
    low, high = (float(call.options.take(name)) for name in ("x_min", "x_max"))
    require(low < high > 0, f"it has the bounds {low} and {high}")
    return call.apply(layers.Chain(clipped(low, high)), _one(call))


# Parts, and other axes.


def _item(call: _Call) -> Value:
    """x[key]: slices, and integers, whose axes go."""
    x, key = call.arguments
    keys = _keys([*key] if isinstance(key, tuple | list) else [key], len(x.shape))
    require(keys[0] == slice(None), "it takes a part of the batch")
    value = call.values[id(x)]
    for axis, each in enumerate(keys[1:], start=1):
        if each != slice(None):
            value = call.then(_slice(axis, each), value)
    if not any(isinstance(each, int) for each in keys):
        return value
    kept = [k for k, each in enumerate(keys) if k and not isinstance(each, int)]
    whole = [x.shape[k] if keys[k] == slice(None) else None for k in kept]
    return call.then(_of_shape(whole), value)


def _keys(key: list[Any], rank: int) -> list[slice | int]:
    """A key for each axis."""
    for each in key:
        if (each is not Ellipsis and not isinstance(each, slice | int)) or isinstance(each, bool):
            refuse("its key has other parts than integers, slices and an ellipsis")
    if Ellipsis in key:
        place = key.index(Ellipsis)
        key[place : place + 1] = [slice(None)] * (rank - len(key) + 1)
    return key + [slice(None)] * (rank - len(key))


def _slice(axis: int, key: slice | int) -> layers.Layer:
    if isinstance(key, int):
        return layers.Slice(axis, key, key + 1 or None)
    if (key.start, key.stop, key.step) == (None, None, -1):
        return layers.Slice(axis, reverse=True)
    require(key.step in (None, 1), f"a slice has the step {key.step}")
    for bound in (key.start, key.stop):
        require(bound is None or isinstance(bound, int), "a bound of a slice is computed")
    return layers.Slice(axis, key.start or 0, key.stop)


def _of_shape(sizes: Sequence[int | None]) -> layers.Layer:
    """A Reshape to sizes behind the batch, of which one may be unknown."""
    require(len(sizes) > 0, "no axis is left but the batch")
    require([*sizes].count(None) < 2, "several sizes are not known")
    return layers.Reshape([-1 if size is None else size for size in sizes])


def _flip(call: _Call) -> Value:
    x = _one(call)
    return call.apply(layers.Slice(_axis(call, len(x.shape)), reverse=True), x)


def _reshape(call: _Call) -> Value:
    x, target = _one(call), [*call.options.take("newshape")]
    sizes = [*x.shape[1:]]
    is_batch = target[0] == -1 and None not in sizes and math.prod(sizes) == math.prod(target[1:])
    require(target[0] == x.shape[0] is not None or is_batch, "it changes the size of the batch")
    return call.apply(_of_shape(target[1:]), x)


def _transpose(call: _Call) -> Value:
    x, axes = _one(call), call.options.take("axes")
    require(axes is not None and axes[0] == 0, "it moves the batch")
    return call.apply(layers.Permute([axis % len(x.shape) for axis in axes[1:]]), x)


def _expand_dims(call: _Call) -> Value:
    x = _one(call)
    axis, sizes = _axis(call, len(x.shape) + 1), [*x.shape]
    return call.apply(_of_shape([*sizes[1:axis], 1, *sizes[axis:]]), x)


def _squeeze(call: _Call) -> Value:
    x = _one(call)
    axis, sizes = _axis(call, len(x.shape)), [*x.shape]
    return call.apply(_of_shape([*sizes[1:axis], *sizes[axis + 1 :]]), x)


def _of_steps(kind: Callable[[bool], layers.Layer]) -> _Compute:
    """Of all steps of a sequence [B, T, C]."""

    def compute(call: _Call) -> Value:
        x, axis = _one(call), call.options.take("axis")
        axis = axis if isinstance(axis, list | tuple) else [axis]
        is_time = len(axis) == 1 and axis[0] in (1, 1 - len(x.shape))
        require(is_time and len(x.shape) == 3, f"it joins the axes {axis} of {len(x.shape)}")
        return call.apply(kind(bool(call.options.take("keepdims"))), x)

    return compute


# By the module of ``keras.src.ops`` and the class.
_OPERATIONS: dict[str, _Compute] = {
    "numpy.Add": _arithmetic(layers.Add, _sum),
    "numpy.Subtract": _arithmetic(layers.Subtract, _difference),
    "numpy.Multiply": _arithmetic(layers.Multiply, _product),
    "numpy.Divide": _arithmetic(None, _quotient),
    "numpy.TrueDivide": _arithmetic(None, _quotient),
    "numpy.Maximum": _merging(layers.Maximum),
    "numpy.Minimum": _merging(layers.Minimum),
    "numpy.Negative": _negative,
    "numpy.Square": _square,
    "numpy.Concatenate": _concatenate,
    "numpy.Clip": _clip,
    "numpy.GetItem": _item,
    "numpy.Flip": _flip,
    "numpy.Reshape": _reshape,
    "numpy.Transpose": _transpose,
    "numpy.ExpandDims": _expand_dims,
    "numpy.Squeeze": _squeeze,
    "numpy.Mean": _of_steps(layers.GlobalAveragePooling1D),
    "numpy.Max": _of_steps(layers.GlobalMaxPooling1D),
    "numpy.Sum": _of_steps(layers.GlobalSumPooling1D),
    "numpy.Tanh": _function("tanh"),
    "numpy.Exp": _function("exponential"),
    "nn.Elu": _elu,
    "nn.LeakyRelu": _leaky_relu,
    "nn.Gelu": _gelu,
    "nn.Softmax": _softmax("softmax"),
    "nn.LogSoftmax": _softmax("log_softmax"),
    **{
        f"nn.{name}": _function(function)
        for name, function in {
            "Relu": "relu",
            "Relu6": "relu6",
            "Sigmoid": "sigmoid",
            "Softplus": "softplus",
            "Softsign": "softsign",
            "Silu": "silu",
            "Selu": "selu",
            "HardSigmoid": "hard_sigmoid",
            "HardSilu": "hard_silu",
            "HardTanh": "hard_tanh",
            "LogSigmoid": "log_sigmoid",
        }.items()
    },
}
