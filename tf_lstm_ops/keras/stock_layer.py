"""Which layers of ``keras.layers`` an op computes. This module does not depend on the backend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras

from tf_lstm_ops import _cells, _deviation, _keras_private, _targets
from tf_lstm_ops.keras import options

# The cells that the ops know. A layer with a cell of another class, also of a derived one, runs the
# code of Keras.
_CELLS = (keras.layers.LSTMCell, keras.layers.GRUCell, keras.layers.SimpleRNNCell)
# The classes that define their own loop over the steps. SimpleRNN has that of RNN.
CLASSES_WITH_LOOP = (keras.layers.LSTM, keras.layers.GRU, keras.layers.RNN)

Shape = Sequence[int | None]  # None: any size


def unrolled_differs(layer: Any) -> bool:
    """Whether Keras computes something else for masked steps because the layer is unrolled.

    Keras then reverses the outputs in another order than the mask. The ops compute what Keras does
    without ``unroll``.

    Args:
      layer: a layer of ``keras.layers``.

    Returns:
      True for example for the backward layer of a Bidirectional with ``unroll`` and
      ``return_sequences``.
    """
    return bool(
        layer.unroll
        and layer.go_backwards
        and layer.return_sequences
        and layer.zero_output_for_mask
    )


def why_other_cell(layer: Any) -> str | None:
    """Why the cell of a layer is none that an op computes.

    Args:
      layer: a recurrent layer of Keras.

    Returns:
      The reason; None if the class of the cell is one of Keras'.
    """
    kind = type(layer.cell)
    return None if kind in _CELLS else f"its cell is a {kind.__name__}"


def why_no_op(layer: Any) -> str | None:
    """Why the options of a layer have no op.

    Args:
      layer: a layer whose `why_other_cell` is None.

    Returns:
      The reason, or None.
    """
    if reason := _deviation.of_cell(layer):
        return reason
    if not (_keras_private.is_of_keras(type(layer.cell)) and layer.cell.built):
        return "its cell is not built, or methods of the class of its cell were replaced"
    if layer.cell.activity_regularizer is not None:
        return "its cell has an activity_regularizer"
    if layer.compute_dtype != layer.cell.compute_dtype:
        return f"its cell computes in {layer.cell.compute_dtype}"
    if getattr(layer.cell, "dtype_policy", layer.dtype_policy).quantization_mode is not None:
        return "its cell is quantized"
    return options.why_not(layer, _targets.CPU)


def first_mask(mask: Any) -> Any:
    """The mask of a call.

    Args:
      mask: a tensor, a list of which Keras reads the first element, or None.

    Returns:
      The tensor, or None.
    """
    return mask[0] if isinstance(mask, list | tuple) and mask else mask


def why_unrolled(layer: Any, mask: Any) -> str | None:
    """Why a call of an unrolled layer is not what an op computes.

    Args:
      layer: the layer.
      mask: of the call, or a list with it; None: all steps are valid.

    Returns:
      The reason, or None.
    """
    masks = [m for m in (mask if isinstance(mask, list | tuple) else [mask]) if m is not None]
    if not (masks and unrolled_differs(layer)):
        return None
    return "unroll=True, with which Keras computes something else for masked steps"


def why_not_these_shapes(
    layer: Any, x: Shape, states: Sequence[Shape], mask: Shape | None
) -> str | None:
    """Why an op does not take tensors of these shapes. Keras broadcasts more shapes than the ops.

    Args:
      layer: the layer.
      x, states, mask: the shapes of the sequences, the initial states and the mask, if there is
        one.

    Returns:
      The reason; None if x is [B, T, I], each state [B, H] or [1, H], and the mask [B, T],
      [B, T, 1] or one of them with B = 1.
    """
    size = layer.cell.units
    fits = len(states) == len(_cells.BY_OP[options.op_of(layer)].states) and all(
        len(state) == 2 and state[0] in (1, None, x[0]) and state[1] == size for state in states
    )
    if not fits or len(x) != 3:
        return "initial states of other shapes than [B, H]"
    if mask is None:
        return None
    is_matrix = len(mask) == 2 or (len(mask) == 3 and mask[2] == 1)
    if not is_matrix or mask[0] not in (1, None, x[0]) or mask[1] not in (None, x[1]):
        return "a mask of another shape than [B, T]"
    return None
