"""The loop over time of the composites of sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tf_lstm_ops.composite.context import differentiable_in_pfor, is_unrolled

_Step = tuple[tf.Tensor, list[tf.Tensor]]  # the output and the states after a step
# Of a step of the sequence, whether it is valid (or None), and the output and states before it.
# The results have the static shapes of those.
_Advance = Callable[[tf.Tensor, Any, tf.Tensor, list[tf.Tensor]], _Step]
_Results = tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]


def scan(
    cell: Callable[..., list[tf.Tensor]],
    sequence: tf.Tensor,
    valid: tf.Tensor | None,
    initial: list[tf.Tensor],
    *,
    reverse: bool,
    zero_output: bool,
) -> _Results:
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
    zero = tf.zeros_like(initial[0])

    def advance(
        row: tf.Tensor, now: tf.Tensor | None, output: tf.Tensor, states: list[tf.Tensor]
    ) -> _Step:
        before = [output, *states]
        new = cell(row, *states)
        if now is None:
            output, states = new[0], new
        else:
            now = tf.expand_dims(now, 1)
            output = tf.where(now, new[0], zero if zero_output else output)
            states = [tf.where(now, a, b) for a, b in zip(new, states, strict=True)]
        for value, start in zip([output, *states], before, strict=True):
            value.set_shape(start.shape)
        return output, states

    time = sequence.shape[0]
    # Eager loops are Python's in any case. Without lists of tensors, which not every device has.
    if is_unrolled(time) or (tf.executing_eagerly() and time > 0):
        return _scan_unrolled(advance, sequence, valid, initial, zero, reverse)
    if differentiable_in_pfor():
        return _scan_lists(advance, sequence, valid, initial, zero, reverse)
    return _scan_arrays(advance, sequence, valid, initial, zero, reverse)


def _scan_arrays(
    advance: _Advance, sequence: tf.Tensor, valid: Any, initial: Any, zero: Any, reverse: bool
) -> _Results:
    """`scan` with arrays. Converters to ONNX and TensorFlow Lite know its ops, and XLA."""
    time = sequence.shape[0] or tf.shape(sequence)[0]
    if sequence.shape[0] == 0:  # XLA cannot trace a step that reads from an array without elements
        return zero[tf.newaxis][:0], zero, initial

    def by_step(values: tf.Tensor) -> tf.TensorArray:
        values = tf.reverse(values, [0]) if reverse else values
        rows = tf.TensorArray(
            values.dtype, size=time, clear_after_read=False, element_shape=values.shape[1:]
        )
        return rows.unstack(values)

    sequence_rows = by_step(sequence)
    valid_rows = None if valid is None else by_step(valid)

    def step(t: Any, output: tf.Tensor, states: list[tf.Tensor], outputs: Any) -> Any:
        now = None if valid_rows is None else valid_rows.read(t)
        output, states = advance(sequence_rows.read(t), now, output, states)
        outputs = tf.raw_ops.TensorListSetItem(input_handle=outputs, index=t, item=output)
        return t + 1, output, states, outputs

    # A list, not a TensorArray: if the batch size is unknown while tracing, an array lacks the
    # shape of its elements, and TensorFlow cannot stack it if it has none.
    shape = tf.shape(zero)
    outputs = tf.raw_ops.TensorListReserve(
        element_shape=shape, num_elements=time, element_dtype=zero.dtype
    )
    _, output, states, outputs = tf.while_loop(
        lambda t, *_: t < time, step, (0, zero, initial, outputs), maximum_iterations=time
    )
    # TensorFlow Lite's converter needs the number here, if it knows that of TensorListReserve.
    count = -1 if sequence.shape[0] is None else sequence.shape[0]
    stacked = tf.raw_ops.TensorListStack(
        input_handle=outputs,
        element_shape=shape,
        element_dtype=zero.dtype,
        num_elements=count,
    )
    stacked.set_shape([sequence.shape[0], *zero.shape])
    return stacked, output, states


def _scan_lists(
    advance: _Advance, sequence: tf.Tensor, valid: Any, initial: Any, zero: Any, reverse: bool
) -> _Results:
    """`scan` with lists, from whose end a step takes its input.

    tf.vectorized_map and tape.jacobian vectorize a loop with arrays even if it does not depend on
    the iteration, and then fail at its gradient. The gradient of this loop has lists only, too.
    tf2onnx does not know TensorListPopBack, so neither form can replace the other.
    """
    time = tf.shape(sequence)[0]

    def take(rows: tf.Tensor, like: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        shape = tf.shape(like)[1:]
        rows, row = tf.raw_ops.TensorListPopBack(
            input_handle=rows, element_shape=shape, element_dtype=like.dtype
        )
        row.set_shape(like.shape[1:])
        return rows, row

    sources = [sequence] if valid is None else [sequence, valid]
    lists = [
        tf.raw_ops.TensorListFromTensor(
            tensor=source if reverse else tf.reverse(source, [0]),
            element_shape=tf.shape(source)[1:],
        )
        for source in sources
    ]

    def step(
        t: Any, lists: list[tf.Tensor], output: tf.Tensor, states: list[tf.Tensor], outputs: Any
    ) -> Any:
        taken = [take(rows, source) for rows, source in zip(lists, sources, strict=True)]
        now = None if valid is None else taken[1][1]
        output, states = advance(taken[0][1], now, output, states)
        outputs = tf.raw_ops.TensorListPushBack(input_handle=outputs, tensor=output)
        return t + 1, [rows for rows, _ in taken], output, states, outputs

    shape = tf.shape(zero)
    outputs = tf.raw_ops.EmptyTensorList(
        element_shape=shape, max_num_elements=time, element_dtype=zero.dtype
    )
    _, _, output, states, outputs = tf.while_loop(
        lambda t, *_: t < time,
        step,
        (0, lists, zero, initial, outputs),
        maximum_iterations=time,
    )
    stacked = tf.raw_ops.TensorListStack(
        input_handle=outputs, element_shape=shape, element_dtype=zero.dtype
    )
    stacked.set_shape([sequence.shape[0], *zero.shape])
    return stacked, output, states


def _scan_unrolled(
    advance: _Advance, sequence: tf.Tensor, valid: Any, initial: Any, zero: Any, reverse: bool
) -> _Results:
    """`scan` of a known number of steps without a loop of TensorFlow's.

    For eager calls, and for converters that quantise no loops.
    """
    order = slice(None, None, -1 if reverse else 1)
    rows = tf.unstack(sequence)[order]
    valid_rows = [None] * len(rows) if valid is None else tf.unstack(valid)[order]
    output, states, outputs = zero, initial, []
    for row, now in zip(rows, valid_rows, strict=True):
        output, states = advance(row, now, output, states)
        outputs.append(output)
    return tf.stack(outputs), output, states
