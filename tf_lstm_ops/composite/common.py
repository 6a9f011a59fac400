"""What the composites share."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def compute_dtype(dtype: tf.DType) -> tf.DType:
    return tf.float64 if dtype == tf.float64 else tf.float32


def cast(values: Any, dtype: tf.DType) -> Any:
    """Casts floating-point tensors of a flat sequence; others are left alone."""
    return [tf.cast(v, dtype) if v.dtype.is_floating else v for v in values]


def is_absent(argument: tf.Tensor) -> bool:
    """An optional argument that is not given has the shape [0]."""
    return argument.shape.rank == 1 and argument.shape[0] == 0


def valid_steps(sequence: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """Which steps of [T, B, ...] lie within the lengths, [B] or a scalar: [T, B] or [T, 1]."""
    steps = tf.range(tf.shape(sequence, lengths.dtype)[0])
    return steps[:, tf.newaxis] < lengths


def zero_where_not(valid: tf.Tensor, sequence: tf.Tensor) -> tf.Tensor:
    """[T, B, ...] without what stands at steps that are not valid, which may be NaN."""
    return tf.where(valid[:, :, tf.newaxis], sequence, 0)


def straight_through_clip(cs: tf.Tensor, cell_clip: float) -> tf.Tensor:
    """cs within [-cell_clip, cell_clip] where that is positive; the gradient is the identity."""
    if cell_clip <= 0:
        return cs
    return tf.grad_pass_through(lambda v: tf.clip_by_value(v, -cell_clip, cell_clip))(cs)


@tf.custom_gradient
def with_unused(value: tf.Tensor, *arguments: tf.Tensor) -> Any:
    """value; the arguments that it does not depend on have the gradient zero instead of None."""
    return tf.identity(value), lambda upstream: [upstream, *map(tf.zeros_like, arguments)]
