"""Batch sizes that a model's own Input fixes, and whether its graph needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_lstm_ops.export import check, states
from tf_lstm_ops.export.signature import own_batch_sizes


def with_needed_sizes(model: keras.Model, specs: Sequence[Any]) -> list[Any]:
    """The arguments of a model in a file, with the batch sizes that its graph needs.

    ``model.export`` leaves each batch size open. Whether the graph needs that of the model's own
    Input is tried: the model is traced without it, and runs on twice as many rows.

    Args:
      model: the model. Its states and seeds do not change.
      specs: its arguments, as `signature.signature` returns them.

    Returns:
      The specs; with the batch sizes of the Input where they are open, if the model does not run
      with others.
    """
    own = own_batch_sizes(model, specs)
    fixed = _with_sizes(specs, own)
    if fixed == list(specs):
        return fixed
    twice = _with_sizes(specs, [None if size is None else 2 * size for size in own])
    is_needed = not _runs(model, specs, twice) and _runs(model, fixed, fixed)
    return fixed if is_needed else list(specs)


def _with_sizes(specs: Sequence[Any], sizes: Sequence[int | None]) -> list[Any]:
    """The specs with sizes in place of their open batch sizes."""
    found = [
        spec
        if size is None or spec.shape[0] is not None
        else tf.TensorSpec([size, *spec.shape[1:]], spec.dtype, spec.name)
        for spec, size in zip(tf.nest.flatten(specs), sizes, strict=True)
    ]
    return list(tf.nest.pack_sequence_as(list(specs), found))


def _runs(model: keras.Model, specs: Sequence[Any], sizes: Sequence[Any]) -> bool:
    """Whether a model that is traced with some sizes runs with others."""

    @tf.function(input_signature=tf.nest.flatten(specs), autograph=False)
    def predict(*inputs: Any) -> Any:
        with states.from_zeros(model):
            return model(*tf.nest.pack_sequence_as(list(specs), list(inputs)), training=False)

    try:
        predict(*map(tf.constant, check.random_inputs(model, sizes)))
    except Exception:  # a layer of the user's may raise anything
        return False
    return True
