"""The descriptions of recurrent layers."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import keras
import numpy as np

from tf_lstm_ops import _cells
from tf_lstm_ops._activations import DEFAULTS
from tf_lstm_ops._refusal import Refused, naming, refused
from tf_lstm_ops._targets import SESSION
from tf_lstm_ops.inference import file
from tf_lstm_ops.inference.layers.recurrent import stack, with_initial
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
    (record,) = stack(
        [[_arrays(layer.cell, op)]],
        layer.name,
        _cells.BY_OP[op],
        **_results(layer),
        activation=_function(layer.activation),
        recurrent_activation=_function(getattr(layer, "recurrent_activation", _LINEAR)),
        number=float(attributes.get("cell_clip", 0.0)),
        epsilon=attributes.get("epsilon", 0.0),
        proj_clip=float(attributes.get("proj_clip", 0.0)),
    )
    carries = file.CARRIES_NORMALIZED_STATE if attributes.get("carries_normalized_state") else 0
    record = dataclasses.replace(record, flags=record.flags | carries)
    if not getattr(layer, "learned_initial_state", False):
        return record
    (record,) = with_initial([record], [*map(array, layer.learned_states.weights)], layer.name)
    return record


_LINEAR = keras.activations.linear  # the function of gates that a layer does not have


def _function(function: Any) -> int:
    return file.FUNCTIONS[str(name_of(function))]


def _arrays(cell: Any, op: str) -> dict[str, file.Array]:
    """The weights of an op that exist. The bias of a GRU is [3H], or the rows of [2, 3H]."""
    arrays: dict[str, file.Array] = op_arguments.arrays(cell, op)
    if "bias" in arrays and arrays["bias"].ndim == 2:
        arrays["bias"], arrays["recurrent_bias"] = arrays["bias"]
    return arrays


def _results(layer: Any) -> dict[str, Any]:
    """The options that say what a layer returns."""
    names = ("return_sequences", "zero_output_for_mask", "go_backwards")
    return {name: bool(getattr(layer, name)) for name in names}


def stacked(layer: Any) -> list[file.Layer]:
    """Describes a StackedLSTM or a StackedGRU.

    Args:
      layer: the layer.

    Returns:
      A record for each layer of the stack.

    Raises:
      ValueError: an argument is not known.
    """
    _require_options(layer)
    op = "KerasLSTM" if type(layer) is StackedLSTM else "KerasGRU"
    cells, directions = [_arrays(each, op) for each in layer.cell.cells], layer.directions
    clips = stacked_clips.attributes(layer)
    functions: dict[str, Any] = {name: file.FUNCTIONS[f] for name, f in DEFAULTS.items()}
    return stack(
        [cells[k : k + directions] for k in range(0, len(cells), directions)],
        layer.name,
        _cells.BY_OP[op],
        **_results(layer),
        **functions,
        number=clips.get("cell_clip", 0.0),
        proj_clip=clips.get("proj_clip", 0.0),
    )
