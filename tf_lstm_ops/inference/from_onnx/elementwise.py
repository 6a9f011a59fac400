"""Activations, and operators that combine arrays element by element."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_lstm_ops import _activations
from tf_lstm_ops._refusal import refuse
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.from_onnx.values import (
    Array,
    Call,
    Filled,
    Length,
    Operand,
    Operator,
    Size,
    Squares,
    is_of,
    kind_of,
    sum_of,
)
from tf_lstm_ops.inference.layers.activations import GELU, clipped
from tf_lstm_ops.inference.layers.normalization import affine
from tf_lstm_ops.inference.tracing.alignment import aligned, joined, of_rank
from tf_lstm_ops.inference.tracing.axes import (
    Product,
    Traced,
    real,
    size_of,
    with_groups,
    with_known_last,
    with_last,
)
from tf_lstm_ops.onnx_graph.attributes import short

# ONNX's defaults of attributes that a function of a session has as constants.
_LARGEST = float(np.finfo(np.float32).max)  # a bound that bounds nothing
# A length that only rows of zeros do not have, which become zeros: lengths are float64.
_LEAST = float(np.finfo(np.float64).tiny)
_SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}


def _applied(layer: Any, x: Traced) -> list[Operand]:
    return [x.with_value(layer(x.value))]


def _function(name: str, call: Call) -> list[Operand]:
    return _applied(layers.Activation(name), call.traced())


def _numbers(call: Call, *names: str) -> list[float]:
    return [float(call.attributes[name]) for name in names]


def _plain(function: str, names: Sequence[str], call: Call) -> list[Operand]:
    """A function whose numbers are the attributes in their order."""
    numbers = tuple(_numbers(call, *names))
    return _applied(layers.Activation((function, numbers)), call.traced())


def _leaky_relu(call: Call) -> list[Operand]:
    (slope,) = _numbers(call, "alpha")
    return _applied(layers.LeakyReLU(slope), call.traced())


def _selu(call: Call) -> list[Operand]:
    for name, default in _SELU.items():
        if not np.isclose(call.attributes[name], default, rtol=1e-6):
            refuse(f"its {name} is not that of a session, {default:.7g}")
    return _function("selu", call)


def _thresholded_relu(call: Call) -> list[Operand]:
    (alpha,) = _numbers(call, "alpha")
    return _applied(layers.Activation(("threshold", (alpha, 0.0))), call.traced())


def _shrink(call: Call) -> list[Operand]:
    threshold, bias = _numbers(call, "lambd", "bias")
    if bias not in (0.0, threshold) or threshold < 0:
        refuse(
            f"its bias must be 0 or its lambd, which is not negative, and they are {bias} and "
            f"{threshold}"
        )
    function = "soft_shrink" if bias else "hard_shrink"
    return _applied(layers.Activation((function, (threshold,))), call.traced())


def _gelu(call: Call) -> list[Operand]:
    form = call.attributes["approximate"]
    if form not in GELU:
        refuse(f"its approximate is {short(form)}, not none or tanh")
    return _applied(layers.Activation(GELU[form]), call.traced())


def _hard_sigmoid(call: Call) -> list[Operand]:
    alpha, beta = _numbers(call, "alpha", "beta")
    x = scaled(call.traced(), np.float64(alpha), np.float64(beta))
    return _applied(layers.ReLU(max_value=1.0), x)


def _clip(call: Call) -> list[Operand]:
    bounds = [call.attributes.get(name) for name in ("min", "max")]
    for index, what in ((1, "min"), (2, "max")):
        if call.operand(index) is not None:
            bounds[index - 1] = call.constant(index, what).item()
    length = call.operand(0)
    low, high = (
        None if bound is None or sign * bound >= _LARGEST else float(bound)
        for bound, sign in zip(bounds, (-1, 1), strict=True)
    )
    if isinstance(length, Length) and not length.is_square and high is None and (low or 0) >= 0:
        return [dataclasses.replace(length, floor=max(length.floor, low or 0.0))]
    x = call.traced()
    if high is None or high > 0:
        return _applied(layers.Chain(clipped(low, high)), x)
    # The minimum is a maximum of the opposite numbers.
    minus, zero = np.float64(-1), np.float64(0)
    for bound in (low, -high):
        x = x.with_value(layers.Chain(clipped(bound, None))(x.value))
        x = scaled(x, minus, zero)
    return [x]


def _softmax(function: str, call: Call) -> list[Operand]:
    x = call.traced()
    axis = call.axis(x.rank)
    if call.opset < 13 and any(map(real, x.axes[axis + 1 :])):
        refuse("it joins several axes")
    x = with_last(x, axis)
    return _applied(layers.Activation(function), x)


def _prelu(call: Call) -> list[Operand]:
    x, slope = call.traced(), call.constant(1, "slope")
    x, slope = along_features(x, slope)
    return _applied(layers.PReLU(slope), x)


def along_features(x: Traced, constant: Array) -> tuple[Traced, Array]:
    """An array, and a constant for each element of the last axis of its value.

    Args:
      x: the array.
      constant: what NumPy's rules combine with it.

    Returns:
      The array, whose value may be arranged in another way, and [size of its last axis].

    Raises:
      Refused: the constant repeats the array, or an unknown size is needed.
    """
    rank = max(x.rank, constant.ndim)
    x = of_rank(x, rank)
    shape = (1,) * (rank - constant.ndim) + constant.shape
    varying = [k for k, size in enumerate(shape) if size > 1]
    places = _places_of_last(x)
    if not varying:
        x = with_known_last(x)
        return x, np.broadcast_to(constant.ravel(), [x.features])
    if not set(varying) <= {*places}:
        last = tuple(factor for k in varying for factor in real(x.axes[k]))
        rest = [tuple(f for f in group if f not in last) for group in x.groups]
        kept = [group for k, group in enumerate(rest) if k == 0 or group]
        x, places = with_groups(x, (*kept, last)), varying
    ones = [k for k in range(rank) if k not in places]
    part = constant.reshape(shape).transpose([*ones, *places])
    part = part.reshape([shape[k] for k in places])
    try:
        return x, np.broadcast_to(part, [_size(x.axes[k]) for k in places]).ravel()
    except ValueError:
        refuse(f"its constant has the shape {[*constant.shape]}, which repeats the other operand")


def _places_of_last(x: Traced) -> list[int]:
    """The axes that are together the last axis of the value, in their order there."""
    last, found = real(x.groups[-1]), list[int]()
    for factor in last:
        place = next((k for k, product in enumerate(x.axes) if factor in product), None)
        if place is not None and place not in found:
            found.append(place)
    whole = tuple(factor for k in found for factor in real(x.axes[k]))
    return found if whole == last else []


def _size(product: Product) -> int:
    size = size_of(product)
    if size is None:
        refuse("its constant differs along an axis of a size that is not known")
    return size


def scaled(x: Traced, scale: Array | np.floating[Any], offset: Array | np.floating[Any]) -> Traced:
    """x · scale + offset, of each feature.

    Args:
      x: the array.
      scale: for each element of the last axis of its value, or one for all.
      offset: likewise.

    Returns:
      The array.
    """
    x = with_known_last(x)
    numbers = (np.broadcast_to(each, (x.features,)) for each in (scale, offset))
    return x.with_value(affine("scale", *numbers)(x.value))


def _combination(layer: Any, call: Call) -> list[Operand]:
    kind = call.node.op_type
    if kind == "Mul" and _is_square(call):
        return [Squares((call.traced(),))]
    given = [call.operand(k) for k in range(len(call.operands))]
    if len(given) == 1:
        return given
    if kind == "Div" and isinstance(given[1], Length):
        return [_of_length_1(call.traced(), given[1])]
    if kind == "Add" and all(isinstance(each, Squares) for each in given):
        first, second = (each.arrays for each in given)  # type: ignore[union-attr]
        if len(first) == len(second) == 1:
            return [Squares((*first, *second))]
    given = [sum_of(each) if isinstance(each, Squares) else each for each in given]
    call = dataclasses.replace(call, operands=given)
    if len(given) == 2 and any(isinstance(each, np.ndarray | Filled) for each in given):
        return [_with_constant(call, kind)]
    if layer is None:
        refuse("a session does not divide by an array that is computed")
    together = aligned([call.traced(k) for k in range(len(given))])
    return [together.combined(layer()(*together.values))]


def _is_square(call: Call) -> bool:
    first, second = (call.operand(k) for k in (0, 1))
    return first is second and isinstance(first, Traced)


def _with_constant(call: Call, kind: str) -> Traced:
    """x with a constant."""
    is_second = isinstance(call.operand(0), Traced)
    x = call.traced(0 if is_second else 1)
    other = call.operand(1 if is_second else 0)
    if isinstance(other, Filled):
        x = _of_shape(x, other)
        other = np.array(other.value)
    constant = other
    if not isinstance(constant, np.ndarray) or constant.dtype == object:
        refuse("an operand is a size of the call")
    x, numbers = along_features(x, constant.astype(np.float64))
    one, zero = np.float64(1), np.float64(0)
    if kind in ("Add", "Sum"):
        return scaled(x, one, numbers)
    if kind == "Sub":
        return scaled(x, one, -numbers) if is_second else scaled(x, -one, numbers)
    if kind == "Mul":
        return scaled(x, numbers, zero)
    if kind == "Div" and is_second and numbers.all():
        return scaled(x, 1 / numbers, zero)
    refuse("a session combines a computed array and a constant by a sum, a product or a difference")


def _of_shape(x: Traced, filled: Filled) -> Traced:
    """x with as many axes as it and an array of equal elements, which repeats none of x."""
    sizes = filled.sizes
    if sizes is None:
        refuse(f"an operand is {kind_of(filled)} whose shape is not known")
    x = of_rank(x, max(x.rank, len(sizes)))
    for product, size in zip(reversed(x.axes), reversed(sizes), strict=False):
        is_one = size is None or (not isinstance(size, Size) and size == 1)
        if not is_one and not is_of(size, product):
            refuse(f"an operand is {kind_of(filled)} of other sizes than the other one")
    return x


def _of_length_1(x: Traced, length: Length) -> Traced:
    """An array divided by the lengths of its rows."""
    rows = length.array
    if x.value.key != rows.value.key or x.axes != rows.axes or length.is_square:
        refuse("it divides by the lengths of other rows than its own")
    if not length.keeps and length.axis not in (0, x.rank - 1):
        refuse("it divides by lengths along another axis than theirs")
    x = with_last(x, length.axis)
    if x.features == 1 and not real(x.axes[length.axis]):
        refuse("it divides by the length of one number")
    return _applied(layers.UnitNormalization(x.features, length.floor), x)[0]  # type: ignore[return-value]


def _lp_normalization(call: Call) -> list[Operand]:
    if call.attributes["p"] != 2:
        refuse(f"its p is {call.attributes['p']}, and a session has 2")
    x = call.traced()
    return [_of_length_1(x, Length(x, call.axis(x.rank), True, floor=_LEAST))]


def _power(call: Call) -> list[Operand]:
    x, exponent = call.traced(), call.constant(1, "exponent")
    if exponent.size != 1 or exponent.ravel()[0] not in (1, 2):
        refuse("a session has the powers 1 and 2")
    x = of_rank(x, max(x.rank, exponent.ndim))
    return [x if exponent.ravel()[0] == 1 else Squares((x,))]


def _root(call: Call) -> list[Operand]:
    """sqrt(a² + b²). A session has no other root."""
    squares = call.operand(0)
    if isinstance(squares, Length) and squares.is_square:
        return [dataclasses.replace(squares, is_square=False)]
    if not isinstance(squares, Squares) or len(squares.arrays) != 2:
        refuse("a session has the square root of a sum of two squares only")
    if len({tuple(map(size_of, array.axes)) for array in squares.arrays}) > 1:
        refuse("the squares have different shapes")
    together = aligned([with_known_last(array) for array in squares.arrays])
    return [together.combined(layers.Magnitude()(joined(together.values)))]


def _negative(call: Call) -> list[Operand]:
    return [scaled(call.traced(), np.float64(-1), np.float64(0))]


def _dropout(call: Call) -> Sequence[Operand]:
    """It does nothing in inference."""
    if call.operand(2) is not None and call.constant(2, "training_mode").any():
        refuse("it is that of training")
    if len(call.used) > 1 and any(call.used[1:]):
        refuse("its further outputs are read")
    return [call.operand(0), *[None] * (len(call.used) - 1)]


def _same(call: Call) -> Sequence[Operand]:
    return [call.operand(0)]


def _of_activation(function: _activations.Activation) -> Operator:
    """An activation whose numbers are attributes."""
    assert function.onnx is not None
    return Operator(functools.partial(_plain, function.name, [*function.onnx[1]]))


def _merge(layer: type[layers.Layer] | None, of_squares: bool = False) -> Operator:
    return Operator(functools.partial(_combination, layer), of_squares=of_squares)


OPERATORS = {
    # Arrays together.
    "Add": _merge(layers.Add, of_squares=True),
    "Sum": _merge(layers.Add),
    "Sub": _merge(layers.Subtract),
    "Mul": _merge(layers.Multiply),
    "Div": _merge(None),
    "Max": _merge(layers.Maximum),
    "Min": _merge(layers.Minimum),
    "Mean": _merge(layers.Average),
    # Functions of elements.
    **{each.onnx[0]: _of_activation(each) for each in _activations.TABLE if each.onnx},
    "LeakyRelu": Operator(_leaky_relu),
    "Selu": Operator(_selu),
    "ThresholdedRelu": Operator(_thresholded_relu),
    "Shrink": Operator(_shrink),
    "Gelu": Operator(_gelu),
    "HardSigmoid": Operator(_hard_sigmoid),
    "Clip": Operator(_clip),
    "PRelu": Operator(_prelu),
    "Softmax": Operator(functools.partial(_softmax, "softmax")),
    "LogSoftmax": Operator(functools.partial(_softmax, "log_softmax")),
    "Pow": Operator(_power),
    "Sqrt": Operator(_root, of_squares=True),
    "Neg": Operator(_negative),
    "LpNormalization": Operator(_lp_normalization),
    "Identity": Operator(_same, of_integers=True, of_squares=True),
    "Dropout": Operator(_dropout, ignored=("ratio", "seed")),
}
