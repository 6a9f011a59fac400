"""The descriptions of recurrent layers."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_lstm_ops.inference import file
from tf_lstm_ops.keras.activations import described, name_of
from tf_lstm_ops.keras.lstm_cell import given_own_arguments
from tf_lstm_ops.keras.stacked import StackedLSTM

_NORM_ARGUMENTS = ("layer_normalization", "layer_normalization_epsilon")
# The arguments of the constructors of LSTM, GRU and stacks that the records of this file have, or
# that do not change what the layer computes in inference.
_KNOWN = frozenset(
    {
        *("units", "activation", "recurrent_activation", "use_bias", "reset_after"),
        *("use_peephole", "cell_clip", "projection_size", *_NORM_ARGUMENTS),
        *("return_sequences", "go_backwards", "zero_output_for_mask"),
        *("num_layers", "bidirectional"),
        *("dropout", "recurrent_dropout", "dropout_per", "seed", "unit_forget_bias"),
        *("stateful", "unroll", "use_cudnn", "return_state", "activity_regularizer"),
        *(
            f"{weight}_{kind}"
            for weight in ("kernel", "recurrent", "bias")
            for kind in ("initializer", "regularizer", "constraint")
        ),
    }
)


def unsupported(layer: Any, reason: str) -> ValueError:
    """The error for a layer that a session does not compute.

    Args:
      layer: a layer or operation of Keras.
      reason: why.

    Returns:
      The error.
    """
    return ValueError(
        f"a session does not compute layer {layer.name}: {reason}. Keep this part of the model in "
        "Keras"
    )


def array(weight: Any) -> file.Array:
    """A copy of a weight.

    Args:
      weight: a variable or tensor of Keras.

    Returns:
      Its value.
    """
    return np.array(keras.ops.convert_to_numpy(weight))


def _require_known_arguments(layer: Any) -> None:
    """Checks that the layer has no argument that this file does not know."""
    parameters = inspect.signature(type(layer).__init__).parameters.values()
    names = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    unknown = names - _KNOWN - {"self"}
    given = [name for name in sorted(unknown) if getattr(layer, name, None) not in (None, False)]
    given += [n for n in given_own_arguments(layer) if n not in {*_KNOWN, *given}]
    if given:
        raise unsupported(layer, f"it has {' and '.join(given)}, which a session does not know")


def lstm(layer: Any) -> file.Layer:
    """Describes an LSTM of one direction.

    Args:
      layer: a built ``keras.layers.LSTM`` or one of this package.

    Returns:
      Its record.

    Raises:
      ValueError: the fused op does not have its options, or an argument is not known.
    """
    _require_known_arguments(layer)
    cell, norm = layer.cell, getattr(layer, "layer_normalization", None)
    options: dict[str, Any] = {
        "cell": file.LSTM,
        "activation": _function(layer, "activation"),
        "recurrent_activation": _function(layer, "recurrent_activation"),
        "number": float(getattr(layer, "cell_clip", None) or 0.0),
    }
    arrays = _arrays(cell, ("kernel", "recurrent_kernel", "bias"))
    for name in ("peephole", "projection"):
        if (weight := getattr(cell, f"{name}_kernel", None)) is not None:
            arrays[name] = array(weight)
    if norm is not None:
        given = [name for name in given_own_arguments(layer) if name not in _NORM_ARGUMENTS]
        if given or not _has_default_functions(layer):
            others = " and ".join(given) or "other activations"
            raise unsupported(layer, f"layer_normalization with {others} has no fused op")
        options |= {"cell": file.LAYER_NORM_LSTM, "epsilon": layer.layer_normalization_epsilon}
        arrays |= _arrays(cell, ("input_gamma", "recurrent_gamma", "state_gamma", "state_beta"))
        if norm == "addons":  # the layer gives its op one bias, the sum
            biases = [cell.input_beta, cell.recurrent_beta, cell.bias]
            arrays["bias"] = array(
                tf.add_n([tf.convert_to_tensor(bias) for bias in biases if bias is not None])
            )
    carries = file.CARRIES_NORMALIZED_STATE if norm == "addons" else 0
    return _single(layer, arrays, carries, options)


def gru(layer: Any) -> file.Layer:
    """Describes a GRU of one direction.

    Args:
      layer: a built ``keras.layers.GRU`` or one of this package.

    Returns:
      Its record.

    Raises:
      ValueError: the fused op does not have its activations, or an argument is not known.
    """
    _require_known_arguments(layer)
    cell, norm = layer.cell, getattr(layer, "layer_normalization", None)
    if not _has_default_functions(layer):
        raise unsupported(
            layer,
            f"its activations are {described(layer.activation)} and "
            f"{described(layer.recurrent_activation)}, and those of a GRU must be tanh and sigmoid",
        )
    options: dict[str, Any] = {"cell": file.GRU if layer.reset_after else file.RESET_BEFORE_GRU}
    arrays = _arrays(cell, ("kernel", "recurrent_kernel"))
    _set_gru_biases(arrays, cell.bias)
    if norm is not None:
        options = {"cell": file.LAYER_NORM_GRU, "epsilon": layer.layer_normalization_epsilon}
        arrays |= _arrays(cell, ("input_gamma", "recurrent_gamma"))
    return _single(
        layer, arrays, 0, {**options, "activation": _TANH, "recurrent_activation": _SIGMOID}
    )


_TANH, _SIGMOID = file.FUNCTIONS["tanh"], file.FUNCTIONS["sigmoid"]


def _set_gru_biases(arrays: dict[str, file.Array], bias: Any) -> None:
    """The bias of a GRU is [3H], or the rows of [2, 3H]."""
    if bias is None:
        return
    values = array(bias)
    if values.ndim == 1:
        arrays["bias"] = values
    else:
        arrays["bias"], arrays["recurrent_bias"] = values


def _arrays(cell: Any, names: tuple[str, ...]) -> dict[str, file.Array]:
    """The weights of a cell that exist."""
    weights = {name: getattr(cell, name) for name in names}
    return {name: array(weight) for name, weight in weights.items() if weight is not None}


def _function(layer: Any, argument: str) -> int:
    function = getattr(layer, argument)
    name = name_of(function)
    if name is None:
        raise unsupported(layer, f"its {argument} is {described(function)}, which has no fused op")
    return file.FUNCTIONS[name]


def _has_default_functions(layer: Any) -> bool:
    names = name_of(layer.activation), name_of(layer.recurrent_activation)
    return names == ("tanh", "sigmoid")


def _flags(layer: Any) -> int:
    flags = file.RETURNS_SEQUENCE if layer.return_sequences else 0
    return flags | (file.ZERO_WHERE_MASKED if layer.zero_output_for_mask else 0)


def _single(
    layer: Any, arrays: dict[str, file.Array], flags: int, options: dict[str, Any]
) -> file.Layer:
    """The record of a layer of one direction."""
    flags |= _flags(layer)
    if layer.go_backwards:
        flags |= file.ORDER_OF_COMPUTATION
    return file.Layer(
        layer.name,
        file.RECURRENT,
        arrays["kernel"].shape[0],
        layer.units,
        arrays["recurrent_kernel"].shape[0],
        directions=file.BACKWARDS if layer.go_backwards else file.FORWARDS,
        flags=flags,
        arrays=[arrays],
        **options,
    )


# The fields that two directions must have alike.
_ALIKE = (
    *("cell", "input_size", "units", "hidden_size", "activation", "recurrent_activation"),
    *("number", "epsilon"),
)


def both(layer: Any, first: file.Layer, second: file.Layer) -> file.Layer:
    """Describes a Bidirectional.

    Args:
      layer: the layer.
      first: the record of its forward layer.
      second: that of its backward layer.

    Returns:
      Its record.

    Raises:
      ValueError: the two layers have different options, or merge_mode is None.
    """
    if layer.merge_mode is None:
        raise unsupported(layer, "merge_mode=None returns two outputs")
    if (first.directions, second.directions) != (file.FORWARDS, file.BACKWARDS):
        raise unsupported(layer, "its forward layer has go_backwards=True")
    differing = [name for name in _ALIKE if getattr(first, name) != getattr(second, name)]
    if first.flags != second.flags & ~file.ORDER_OF_COMPUTATION:
        differing.append("options")
    if differing:
        raise unsupported(layer, f"its two layers have different {', '.join(differing)}")
    return dataclasses.replace(
        first,
        name=layer.name,
        directions=file.BOTH,
        merge=file.MERGE_MODES[layer.merge_mode],
        arrays=[*first.arrays, *second.arrays],
    )


def stacked(layer: Any) -> Iterator[file.Layer]:
    """Describes a StackedLSTM or a StackedGRU.

    Args:
      layer: the layer.

    Yields:
      A record for each layer of the stack. The inner ones keep the order of time, so that the mask
      fits their outputs; with go_backwards the last one returns the order of computation.

    Raises:
      ValueError: an argument is not known.
    """
    _require_known_arguments(layer)
    is_lstm = type(layer) is StackedLSTM
    cells, directions = layer.cell.cells, layer.directions
    for n in range(layer.num_layers):
        arrays = [
            _stacked_arrays(cell, is_lstm) for cell in cells[n * directions : (n + 1) * directions]
        ]
        flags = file.RETURNS_SEQUENCE
        if n == layer.num_layers - 1:
            flags = _flags(layer) | (file.ORDER_OF_COMPUTATION if layer.go_backwards else 0)
        yield file.Layer(
            f"{layer.name} (layer {n} of the stack)",
            file.RECURRENT,
            arrays[0]["kernel"].shape[0],
            layer.units,
            arrays[0]["recurrent_kernel"].shape[0],
            cell=file.LSTM if is_lstm else file.GRU,
            directions=_directions(layer),
            merge=file.MERGE_MODES["concat"] if directions == 2 else 0,
            activation=_TANH,
            recurrent_activation=_SIGMOID,
            flags=flags,
            arrays=arrays,
        )


def _directions(layer: Any) -> int:
    if layer.directions == 2:
        return file.BOTH
    return file.BACKWARDS if layer.go_backwards else file.FORWARDS


def _stacked_arrays(cell: Any, is_lstm: bool) -> dict[str, file.Array]:
    arrays = _arrays(cell, ("kernel", "recurrent_kernel"))
    if is_lstm:
        arrays |= _arrays(cell, ("bias",))
        if cell.projection_kernel is not None:
            arrays["projection"] = array(cell.projection_kernel)
    else:
        _set_gru_biases(arrays, cell.bias)
    return arrays
