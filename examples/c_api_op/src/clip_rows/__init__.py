"""The ops of clip_rows.cc and scale_rows.cc, and their gradients."""

from pathlib import Path

import tensorflow as tf

_OPS = tf.load_op_library(str(Path(__file__).absolute().with_name("libclip_rows.so")))
clip_rows = _OPS.example_clip_rows
scale_rows = _OPS.example_scale_rows


@tf.RegisterGradient("Example>ClipRows")
def _gradient_of_clip_rows(op: tf.Operation, dy: tf.Tensor) -> tf.Tensor:
    """The gradient of y = x max_norm / |x| where |x| > max_norm, and of y = x elsewhere."""
    x, max_norm = op.inputs[0], op.get_attr("max_norm")
    squares = tf.reduce_sum(x * x, axis=1, keepdims=True)
    clipped = squares > max_norm**2
    squares = tf.where(clipped, squares, tf.ones_like(squares))  # no division by zero
    along = tf.reduce_sum(x * dy, axis=1, keepdims=True) / squares
    dx = max_norm * tf.math.rsqrt(squares) * (dy - along * x)
    return tf.where(clipped, dx, dy)


@tf.RegisterGradient("Example>ScaleRows")
def _gradients_of_scale_rows(op: tf.Operation, dy: tf.Tensor) -> list[tf.Tensor]:
    """The gradients of y = scale x: one for each input."""
    x, scale = op.inputs
    return [scale[:, None] * dy, tf.reduce_sum(x * dy, axis=1)]
