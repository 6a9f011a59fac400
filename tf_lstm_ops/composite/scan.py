"""The loop over time of the composites of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def scan(
    cell: Callable[..., list[Any]],
    sequence: tf.Tensor,
    valid: tf.Tensor | None,
    initial: list[Any],
    *,
    reverse: bool,
    zero_output: bool,
) -> tuple[tf.Tensor, tf.Tensor, list[Any]]:
    """Runs a cell over a sequence, step by step.

    Args:
      cell: called with a step of the sequence, [B, ...], and the states; returns the new states,
        the first of which is the output.
      sequence: [T, B, ...].
      valid: bool [T, B], or None: all steps are valid. A step that is not valid does not
        change the states. Its output is zero or the output of the previous step.
      initial: the initial states, [B, ...] each.
      reverse: whether to run from the last step to the first.
      zero_output: whether the output is zero at steps that are not valid.

    Returns:
      The outputs, [T, B, ...] in the order in which the steps run; the last output; the final
      states.
    """
    time, zero = sequence.shape[0] or tf.shape(sequence)[0], tf.zeros_like(initial[0])

    def by_step(values: tf.Tensor) -> tf.TensorArray:
        values = tf.reverse(values, [0]) if reverse else values
        rows = tf.TensorArray(
            values.dtype, size=time, clear_after_read=False, element_shape=values.shape[1:]
        )
        return rows.unstack(values)

    sequence_rows = by_step(sequence)
    valid_rows = None if valid is None else by_step(valid)

    def step(t: Any, output: Any, states: list[Any], outputs: Any) -> Any:
        new = cell(sequence_rows.read(t), *states)
        if valid_rows is None:
            output, states = new[0], new
        else:
            now = valid_rows.read(t)[:, tf.newaxis]
            output = tf.where(now, new[0], zero if zero_output else output)
            states = [tf.where(now, a, b) for a, b in zip(new, states, strict=True)]
        for value, start in zip([output, *states], [zero, *initial], strict=True):
            value.set_shape(start.shape)
        outputs = tf.raw_ops.TensorListSetItem(input_handle=outputs, index=t, item=output)
        return t + 1, output, states, outputs

    # A list, not a TensorArray: only a list knows the shape of its elements while it runs. With no
    # step and an unknown batch size TensorFlow could not stack the array. Converters to TensorFlow
    # Lite need a shape that is constant if the batch size is.
    shape = tf.shape(zero)
    outputs = tf.raw_ops.TensorListReserve(
        element_shape=shape, num_elements=time, element_dtype=zero.dtype
    )
    _, output, states, outputs = tf.while_loop(
        lambda t, *_: t < time, step, (0, zero, initial, outputs), maximum_iterations=time
    )
    stacked = tf.raw_ops.TensorListStack(
        input_handle=outputs, element_shape=shape, element_dtype=zero.dtype
    )
    stacked.set_shape([sequence.shape[0], *zero.shape])
    return stacked, output, states
