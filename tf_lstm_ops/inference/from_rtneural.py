"""Graphs of layers from JSON files: those of RTNeural and AIDA-X, and those of GuitarML.

A file of RTNeural has `in_shape` and `layers`, whose arrays are those of Keras. One of GuitarML
(Automated-GuitarAmpModelling, NeuralPi) has `model_data`, and PyTorch's `state_dict`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tf_lstm_ops import _activations, _cells
from tf_lstm_ops._refusal import Refusals, naming, require, within
from tf_lstm_ops.files import json, limits
from tf_lstm_ops.inference import layers
from tf_lstm_ops.inference.graph import Value
from tf_lstm_ops.inference.layers.recurrent import Recurrent, layer_class
from tf_lstm_ops.inference.reader import Reader
from tf_lstm_ops.weights import class_of

Array = npt.NDArray[np.float32]

_FUNCTIONS = {f.name: f.name for f in _activations.TABLE if f.is_of_rtneural}
_FUNCTIONS[""] = _FUNCTIONS.pop("linear")


def graph_of(path: Any) -> tuple[Value, Value]:
    """The graph of a file.

    Args:
      path: see `Session.from_rtneural`.

    Returns:
      The input [B, T, I] and the output.

    Raises:
      OSError: the file cannot be read, or is not a regular one.
      ValueError: it is no such file.
      TypeError: path has another type.
    """
    content = limits.content(path)
    with within(os.fsdecode(path)):
        return _graph(json.parsed("the file", content, has_numbers=True))


def _graph(model: Any) -> tuple[Value, Value]:
    keys = model if isinstance(model, dict) else {}
    if "layers" in keys:
        return _of_layers(keys)
    if "state_dict" in keys:
        return _of_state_dict(keys)
    if "architecture" in keys:
        raise ValueError(
            "this is a file of Neural Amp Modeler. A session has no such models: they begin with "
            "states that are not zero"
        )
    raise ValueError(
        "the file must have 'in_shape' and 'layers', as RTNeural writes them, or 'model_data' and "
        f"'state_dict', as GuitarML does. It has {_shortened([*keys])}"
    )


def _of_layers(model: Mapping[str, Any]) -> tuple[Value, Value]:
    """RTNeural, and AIDA-X, which adds the keys of the options."""
    first = _shape("in_shape", model)
    given = model["layers"]
    if not isinstance(given, list) or not given:
        raise ValueError(f"layers must be a list of one or more. Received: {_shortened(given)}")
    for key in ("in_gain", "out_gain"):
        if model.get(key, 0):
            raise ValueError(f"{key} must be 0. Received: {_shortened(model[key])}")
    skip = _integer("in_skip", Reader(model), 0, least=0)
    x = y = layers.Input((None, first[-1]))
    before, refusals = first, Refusals("layers")
    for number, each in enumerate(given):
        fields = Reader(each if isinstance(each, dict) else {})
        behind = _sizes(fields.take("shape"))
        where = f"layer {number} ({_shortened(fields.take('type'))})"
        with refusals.part(), naming(where):
            for layer in _layer(where, fields, before, len(first)):
                y = layer(y)
        if behind is None:
            break  # what those behind it get is not known
        before = behind
    refusals.finish()
    if skip and len(before) < len(first):
        raise ValueError("with in_skip the output must have an axis of time")
    return x, _plus_input(x, y, first[-1], before[-1], skip)


def _layer(name: str, fields: Reader, before: Sequence[Any], axes: int) -> list[layers.Layer]:
    """A layer behind one of a shape."""
    kind = fields.take("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ValueError(f"the type must be one of {[*_KINDS]}")
    shape = _shape("shape", fields.values)
    steps = [each[1] for each in (before, shape) if len(each) == 3 and each[1] is not None]
    if len(steps) == 2 and steps[0] != steps[1]:
        raise ValueError(
            f"the shape has {steps[1]} steps behind {steps[0]}. A convolution must be causal"
        )
    made = [_KINDS[kind](name, fields, before[-1], shape[-1])]
    fields.finish(_unknown)
    if isinstance(made[0], Recurrent) and len(shape) < axes and len(before) == axes:
        made.append(layers.LastStep())
    return made


def _unknown(names: Sequence[str]) -> str:
    return f"it has {_shortened([*names])}, which is unknown"


def _dense(name: str, fields: Reader, inputs: int, units: int) -> layers.Layer:
    kernel, bias = [*_weights(fields, [(inputs, units), (units,)], 1, 2), None][:2]
    return layers.Dense(kernel, bias, _function(fields), name)


def _conv1d(name: str, fields: Reader, inputs: int, units: int) -> layers.Layer:
    size, dilation = _integer("kernel_size", fields), _integer("dilation", fields)
    groups = _integer("groups", fields, 1)
    if inputs % groups or units % groups:
        raise ValueError(f"groups must divide {inputs} and {units}. Received: {groups}")
    shapes = [(size, inputs // groups, units), (units,)]
    kernel, bias = [*_weights(fields, shapes, 1, 2), None][:2]
    function = _function(fields)
    return layers.Conv1D(kernel, bias, 1, "causal", dilation, groups, function, name)


def _lstm(name: str, fields: Reader, inputs: int, units: int) -> layers.Layer:
    _function(fields, ("tanh", ""))
    shapes = [(inputs, 4 * units), (units, 4 * units), (4 * units,)]
    return layers.LSTM(_weights(fields, shapes, 3), return_sequences=True, name=name)


def _gru(name: str, fields: Reader, inputs: int, units: int) -> layers.Layer:
    _function(fields, ("tanh", ""))
    shapes = [(inputs, 3 * units), (units, 3 * units), (2, 3 * units)]
    return layers.GRU(_weights(fields, shapes, 3), return_sequences=True, name=name)


def _prelu(name: str, fields: Reader, inputs: int, units: int) -> layers.Layer:
    _function(fields, ("",))
    _require_equal(inputs, units)
    (alpha,) = _weights(fields, [(1, None)], 1)
    if alpha.size not in (1, units):
        raise ValueError(f"weights[0] must have 1 or {units} elements. Received: {alpha.size}")
    return layers.PReLU(alpha, name)


def _batchnorm(name: str, fields: Reader, inputs: int, units: int) -> layers.Layer:
    _function(fields, ("",))
    _require_equal(inputs, units)
    *scale, mean, variance = _weights(fields, [(units,)] * 4, 2, 4)
    gamma, beta = scale or (None, None)
    epsilon = float(_array("epsilon", fields.take("epsilon"), ()))
    return layers.BatchNormalization(
        gamma=gamma, beta=beta, mean=mean, variance=variance, epsilon=epsilon, name=name
    )


def _activation(name: str, fields: Reader, inputs: int, units: int) -> layers.Layer:
    _require_equal(inputs, units)
    _weights(fields, [], 0)
    return layers.Activation(_function(fields), name)


_KINDS: dict[str, Callable[[str, Reader, int, int], layers.Layer]] = {
    "dense": _dense,
    "time-distributed-dense": _dense,
    "conv1d": _conv1d,
    "lstm": _lstm,
    "gru": _gru,
    "prelu": _prelu,
    "batchnorm": _batchnorm,
    "activation": _activation,
}


def _of_state_dict(model: Mapping[str, Any]) -> tuple[Value, Value]:
    """GuitarML: recurrent layers, and a linear one, whose output may be added to the input."""
    said, state = model.get("model_data"), model["state_dict"]
    if not isinstance(said, dict) or not isinstance(state, dict):
        raise ValueError("model_data and state_dict must be objects")
    data = Reader(said)

    def other(names: Sequence[str]) -> str:
        return (
            "model_data must be that of a 'SimpleRNN' of one direction, without other options. "
            f"Received: {_shortened(said)}"
        )

    is_known = data.take("model") == "SimpleRNN" and data.take("bidirectional", False) is False
    require(is_known, other(()))
    unit = data.take("unit_type")
    if not isinstance(unit, str) or unit not in _cells.BY_COMMON:
        raise ValueError(
            f"unit_type must be one of {[*_cells.BY_COMMON]}. Received: {_shortened(unit)}"
        )
    sizes = ("input_size", "hidden_size", "output_size")
    inputs, hidden, outputs = (_integer(key, data) for key in sizes)
    count, skip = _integer("num_layers", data, 1), _integer("skip", data, 0, least=0)
    data.ignore(["bias_fl"])  # the arrays say it
    data.finish(other)
    arrays = Reader({name: _array(name, value, None) for name, value in state.items()})
    linear = [a for a in map(arrays.take, ("lin.weight", "lin.bias")) if a is not None]
    found = class_of(_cells.BY_COMMON[unit]).from_torch(arrays.values, prefix="rec.")
    arrays.ignore(name for name in state if name.startswith("rec."))
    arrays.finish(lambda names: f"state_dict has {_shortened([*names])}, which is unknown")
    recurrent = layer_class(found)(found, return_sequences=True)
    first = found.cells[0]
    got = [first.kernel.shape[0], first.recurrent_kernel.shape[0], found.num_layers]
    wanted = [inputs, hidden, count]
    shapes = [array.shape for array in linear]
    if got != wanted or shapes not in ([(outputs, hidden)], [(outputs, hidden), (outputs,)]):
        raise ValueError(
            f"the arrays of state_dict do not have the sizes of model_data: {_shortened(said)}"
        )
    x = layers.Input((None, inputs))
    y = layers.Dense(linear[0].T, *linear[1:])(recurrent(x))
    return x, _plus_input(x, y, inputs, outputs, skip)


def _plus_input(x: Value, y: Value, inputs: int, outputs: int, skip: int) -> Value:
    """The output plus the first `skip` channels of the input; one channel is added to all."""
    if not skip:
        return y
    if skip > inputs or skip not in (1, outputs):
        raise ValueError(
            f"the first {skip} channels of {inputs} cannot be added to the {outputs} of the output"
        )
    kernel = np.eye(inputs, skip, dtype=np.float32)
    taken = x if skip == inputs == outputs else layers.Dense(kernel + np.zeros(outputs))(x)
    return layers.Add()(y, taken)


def _sizes(value: Any) -> list[Any] | None:
    """The shape of the batch, the steps and the features, or without steps; None: it is none."""
    is_shape = isinstance(value, list) and len(value) in (2, 3) and value[-1] is not None
    return value if is_shape and all(size is None or _is_size(size) for size in value) else None


def _shape(key: str, fields: Mapping[str, Any]) -> list[Any]:
    given: Any = fields.get(key)
    if found := _sizes(given):
        return found
    if isinstance(given, list) and given[1:] and given[-1] is None:
        raise ValueError(f"{key} must end with the number of features. Received: {given}")
    raise ValueError(
        f"{key} must be a list of 2 or 3 sizes, of which the last is the number of features. "
        f"Received: {_shortened(given)}"
    )


def _is_size(value: Any, least: int = 1) -> bool:
    return type(value) is int and least <= value <= limits.RTNEURAL_SIZE


def _integer(key: str, fields: Reader, default: int | None = None, least: int = 1) -> int:
    """An integer, or the only one of a list."""
    value: Any = fields.take(key, default)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not _is_size(value, least):
        raise ValueError(f"{key} must be an integer from {least} on. Received: {_shortened(value)}")
    return int(value)


def _function(fields: Reader, known: Sequence[str] = (*_FUNCTIONS,)) -> str:
    name = fields.take("activation", "")
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"activation must be one of {[*known]}. Received: {_shortened(name)}")
    return _FUNCTIONS[name]


def _require_equal(inputs: int, units: int) -> None:
    if inputs != units:
        raise ValueError(f"the shape must have {inputs} features. Received: {units}")


def _weights(fields: Reader, shapes: Sequence[Any], *counts: int) -> list[Any]:
    """The arrays of a layer, of which there may be some numbers."""
    given: Any = fields.take("weights")
    count = len(given) if isinstance(given, list) else None
    if count not in counts:
        wanted = " or ".join(map(str, counts))
        raise ValueError(f"weights must be a list of {wanted} arrays. Received: {count}")
    pairs = zip(given, shapes, strict=False)
    return [_array(f"weights[{k}]", value, shape) for k, (value, shape) in enumerate(pairs)]


def _array(name: str, value: Any, shape: Sequence[int | None] | None) -> Array:
    """Numbers as float32, of a shape; None: of any."""
    try:
        with np.errstate(over="ignore"):
            read = np.asarray(value)
            found = read.astype(np.float32) if read.dtype.kind in "iuf" else None
    except (ValueError, OverflowError):
        found = None
    if found is None or not np.isfinite(found).all() or not found.size:
        raise ValueError(f"{name} must be an array of finite numbers of float32")
    fits = shape is None or (
        len(shape) == found.ndim
        and all(want in (None, size) for want, size in zip(shape, found.shape, strict=True))
    )
    if not fits:
        raise ValueError(f"{name} must have the shape {shape}. Received: {found.shape}")
    return found


def _shortened(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
