"""The sizes of a layer's call, which are checked before its op or loop runs.

An unknown size is not checked here: in a graph the ops check it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

_Shape = tuple[int | None, ...]


def require_fitting(layer: Any, sequences: Any, initial_state: Any, mask: Any) -> None:
    """Checks the arguments of a call.

    Args:
      layer: a built recurrent layer of this package.
      sequences: [B, T, I], or a RaggedTensor [B, (steps), I].
      initial_state: a tensor or a list of them; or None.
      mask: [B, T] or [B, T, 1], 1 for B is allowed; a list with it; ragged; or None.

    Raises:
      ValueError: a size is not that of the layer or of the sequences.
    """
    shape = _shape_of(sequences)
    if shape is None or len(shape) != 3:  # Keras has checked the rank
        return
    batch, time, features = shape
    built_for = getattr(layer.cell, "built_features", None)
    if _differ(features, built_for):
        raise ValueError(
            f"the layer was built for {built_for} features. Received: {features}, in an input of "
            f"shape {shape} of layer {layer.name}"
        )
    if layer.stateful:
        _require_batch_of_states(layer, batch)
    if initial_state is not None:
        _require_states(layer, initial_state, batch)
    if mask is not None:
        _require_mask(mask, batch, _longest(sequences) if time is None else time)


def require_lengths(lengths: Any, sequences: Any) -> None:
    """Checks the argument sequence_lengths of a call.

    Args:
      lengths: a tensor, symbolic or not.
      sequences: [B, T, I].

    Raises:
      ValueError: lengths are no integers, are not [B], or one is not from 0 to T. In a graph their
        values are not known.
    """
    if not str(getattr(lengths.dtype, "name", lengths.dtype)).startswith(("int", "uint")):
        dtype = getattr(lengths.dtype, "name", lengths.dtype)
        raise ValueError(f"sequence_lengths must be integers. Received: dtype {dtype}")
    batch, time, *_ = (*(_shape_of(sequences) or ()), None, None)
    shape = _shape_of(lengths)
    if shape is not None and (len(shape) != 1 or _differ(shape[0], batch)):
        here = "" if batch is None else f", here [{batch}]"
        raise ValueError(f"sequence_lengths must be [batch]{here}. Received: {shape}")
    values = None if isinstance(lengths, keras.KerasTensor) else tf.get_static_value(lengths)
    if values is None or time is None:
        return
    for row in np.flatnonzero((values < 0) | (values > time))[:1]:
        raise ValueError(
            f"sequence_lengths must be from 0 to {time}, the number of steps. Received: "
            f"{values[row]} for row {row}"
        )


def tensors(count: int) -> str:
    """A number of tensors in words.

    Args:
      count: the number.

    Returns:
      "1 tensor", "2 tensors".
    """
    return "1 tensor" if count == 1 else f"{count} tensors"


def _require_batch_of_states(layer: Any, batch: int | None) -> None:
    states = keras.tree.flatten(layer.states)
    size = states[0].shape[0] if states else None
    if _differ(batch, size):
        raise ValueError(
            f"layer {layer.name} is stateful and keeps states of batch size {size}. Received: "
            f"batch size {batch}. Pass batches of {size}, or make the layer with stateful=False"
        )


def _require_states(layer: Any, initial_state: Any, batch: int | None) -> None:
    sizes = keras.tree.flatten(layer.cell.state_size)
    if not all(isinstance(size, int) for size in sizes):  # of a cell of the user's
        return
    states = keras.tree.flatten(initial_state)
    if len(states) != len(sizes):
        raise ValueError(
            f"initial_state must {layer._expected_states}. Received {tensors(len(states))}"
        )
    for name, state, size in zip(layer._names_of_states, states, sizes, strict=True):
        shape = _shape_of(state)
        if shape is None or (len(shape) == 2 and _fit(shape, ((batch, 1), (size,)))):
            continue
        here = "" if batch is None else f", here [{batch}, {size}]"
        raise ValueError(
            f"{name} of initial_state must be [batch, {size}]{here}. Received: {shape}"
        )


def _require_mask(mask: Any, batch: int | None, time: int | None) -> None:
    if isinstance(mask, list | tuple):
        mask = mask[0]
    shape = _shape_of(mask)
    if shape is None or isinstance(mask, tf.RaggedTensor):
        return
    rank = len(shape)
    if rank not in (2, 3) or not _fit(shape, ((batch, 1), (time,), (1,))[:rank]):
        wanted = ", ".join("any" if size is None else str(size) for size in (batch, time))
        raise ValueError(f"mask must be [{wanted}] (batch, time). Received: {shape}")


def _longest(sequences: Any) -> int | None:
    """The number of steps of the longest row of a ragged tensor; None if it is not known."""
    if not isinstance(sequences, tf.RaggedTensor) or not tf.executing_eagerly():
        return None
    return max([1, *map(int, sequences.row_lengths())])


def _shape_of(value: Any) -> _Shape | None:
    """The shape; None if the rank is not known."""
    shape = getattr(value, "shape", None)
    if shape is None or getattr(shape, "rank", 0) is None:
        return None
    return tuple(shape)


def _fit(shape: _Shape, allowed: Sequence[tuple[int | None, ...]]) -> bool:
    """Whether each size is one of those allowed, or one of them is not known."""
    return all(
        size in sizes or size is None or None in sizes
        for size, sizes in zip(shape, allowed, strict=True)
    )


def _differ(size: int | None, other: int | None) -> bool:
    return size is not None and other is not None and size != other
