"""The descriptions of recurrent layers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from tf_lstm_ops import _cells
from tf_lstm_ops._activations import DEFAULTS
from tf_lstm_ops._refusal import Refused, naming, refused
from tf_lstm_ops._targets import SESSION
from tf_lstm_ops.inference import file
from tf_lstm_ops.keras import op_arguments, options, stacked_clips
from tf_lstm_ops.keras.activations import name_of
from tf_lstm_ops.keras.stacked import StackedLSTM

_INSTEAD = "Keep this part of the model in Keras"


def unsupported(layer: Any, reason: str) -> Refused:
    """The error for a layer that a session does not compute.

    Args:
      layer: a layer or operation of Keras.
      reason: why.

    Returns:
      The error.
    """
    return refused(reason, _where(layer), _INSTEAD)


def computing(layer: Any) -> contextlib.AbstractContextManager[None]:
    """A context whose errors name a layer that a session does not compute.

    Args:
      layer: a layer of Keras.

    Returns:
      The context.
    """
    return naming(_where(layer), _INSTEAD)


def _where(layer: Any) -> str:
    return f"a session does not compute layer {layer.name}"


def array(weight: Any) -> file.Array:
    """A copy of a weight.

    Args:
      weight: a variable or tensor of Keras.

    Returns:
      Its value.
    """
    return np.array(keras.ops.convert_to_numpy(weight))


def _require_options(layer: Any) -> None:
    """Checks that a session computes the layer with all its options."""
    if (reason := options.why_not(layer, SESSION)) is not None:
        raise unsupported(layer, reason)


def single(layer: Any) -> file.Layer:
    """Describes an LSTM, a GRU or a SimpleRNN of one direction.

    Args:
      layer: a built layer of ``keras.layers`` or of this package.

    Returns:
      Its record.

    Raises:
      ValueError: the fused ops do not have its options, or an argument is not known.
    """
    _require_options(layer)
    op, attributes = options.op_of(layer), op_arguments.attributes(layer)
    arrays = _arrays(layer.cell, op)
    flags = _flags(layer)
    if layer.go_backwards:
        flags |= file.ORDER_OF_COMPUTATION
    if attributes.get("carries_normalized_state"):
        flags |= file.CARRIES_NORMALIZED_STATE
    return file.Layer(
        layer.name,
        file.RECURRENT,
        arrays["kernel"].shape[0],
        layer.units,
        arrays["recurrent_kernel"].shape[0],
        cell=_cells.BY_OP[op].number,
        directions=file.BACKWARDS if layer.go_backwards else file.FORWARDS,
        activation=_function(layer.activation),
        recurrent_activation=_function(getattr(layer, "recurrent_activation", _LINEAR)),
        flags=flags,
        number=float(attributes.get("cell_clip", 0.0)),
        epsilon=attributes.get("epsilon", 0.0),
        proj_clip=float(attributes.get("proj_clip", 0.0)),
        arrays=[arrays],
    )


_LINEAR = keras.activations.linear  # the function of gates that a layer does not have


def _function(function: Any) -> int:
    return file.FUNCTIONS[str(name_of(function))]


def _arrays(cell: Any, op: str) -> dict[str, file.Array]:
    """The weights of an op that exist. The bias of a GRU is [3H], or the rows of [2, 3H]."""
    arrays: dict[str, file.Array] = op_arguments.arrays(cell, op)
    if "bias" in arrays and arrays["bias"].ndim == 2:
        arrays["bias"], arrays["recurrent_bias"] = arrays["bias"]
    return arrays


def _flags(layer: Any) -> int:
    flags = file.RETURNS_SEQUENCE if layer.return_sequences else 0
    return flags | (file.ZERO_WHERE_MASKED if layer.zero_output_for_mask else 0)


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
    _require_options(layer)
    op = "KerasLSTM" if type(layer) is StackedLSTM else "KerasGRU"
    cells, directions = layer.cell.cells, layer.directions
    clips = stacked_clips.attributes(layer)
    for n in range(layer.num_layers):
        arrays = [_arrays(cell, op) for cell in cells[n * directions : (n + 1) * directions]]
        flags = file.RETURNS_SEQUENCE
        if n == layer.num_layers - 1:
            flags = _flags(layer) | (file.ORDER_OF_COMPUTATION if layer.go_backwards else 0)
        yield file.Layer(
            f"{layer.name} (layer {n} of the stack)",
            file.RECURRENT,
            arrays[0]["kernel"].shape[0],
            layer.units,
            arrays[0]["recurrent_kernel"].shape[0],
            cell=_cells.BY_OP[op].number,
            directions=_directions(layer),
            merge=file.MERGE_MODES["concat"] if directions == 2 else 0,
            activation=file.FUNCTIONS[DEFAULTS["activation"]],
            recurrent_activation=file.FUNCTIONS[DEFAULTS["recurrent_activation"]],
            flags=flags,
            number=clips.get("cell_clip", 0.0),
            proj_clip=clips.get("proj_clip", 0.0),
            arrays=arrays,
        )


def _directions(layer: Any) -> int:
    if layer.directions == 2:
        return file.BOTH
    return file.BACKWARDS if layer.go_backwards else file.FORWARDS
