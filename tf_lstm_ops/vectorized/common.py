"""The two ways to convert an op: one call for the rows of all iterations, or a loop of calls.

n iterations, B rows of one iteration. A tensor that differs between the iterations is stacked: it
has the iterations as an additional first axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops import _tf_private
from tf_lstm_ops.composite.common import is_absent

# A function for pfor's registry: from its description of an op to the wrapped outputs.
Converter = Callable[[Any], Any]


class Rows(NamedTuple):
    """Which axes of an op's tensors are the rows of the batch.

    Rows do not affect each other, except in the sums over all rows: the gradients of the weights.

    Attributes:
      inputs: the axes of the inputs by name. The others are the same for all rows.
      outputs: the axes of the outputs by name. The others are not those of the rows together.
      saved: None, or a function of the folded inputs by name and of the op. It returns the inputs
        by name that are results of the forward op, computed for the folded rows.
    """

    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    saved: Callable[[dict[str, Any], Any], dict[str, Any]] | None = None


def converter(rows: Callable[[Any], Rows | None]) -> Converter:
    """A converter of an op.

    Outputs with rows come from one call of the op with n·B rows, if no other input is stacked. All
    other outputs come from n calls. TensorFlow does not run the calls whose outputs are not used.

    Args:
      rows: from an op in a graph to its rows; None where all outputs must come from n calls.

    Returns:
      The converter.
    """

    def convert(pfor_input: Any) -> list[Any]:
        op = pfor_input.op
        found = rows(op)
        folded = None if found is None else _fold(pfor_input, found)
        if folded is not None and len(folded) == len(op.outputs):
            return [folded[name] for name in _names(op.op_def.output_arg)]
        looped = _loop(pfor_input)
        if folded is None:
            return looped
        names = _names(op.op_def.output_arg)
        return [folded.get(name, each) for name, each in zip(names, looped, strict=True)]

    return convert


def _names(arguments: Any) -> list[str]:
    return [argument.name for argument in arguments]


def _fold(pfor_input: Any, rows: Rows) -> dict[str, Any] | None:
    """The outputs with rows by name, from one call of the op; None if it needs n calls."""
    op, count = pfor_input.op, _tf_private.iterations(pfor_input)
    names = _names(op.op_def.input_arg)
    saved = () if rows.saved is None else ("output", "reserve", "z_state", "cell_output_fwd")
    folded: dict[str, Any] = {}
    outputs = _names(op.op_def.output_arg)
    ranks = {name: o.shape.rank for name, o in zip(outputs, op.outputs, strict=True)}
    if any(rank is None and name in rows.outputs for name, rank in ranks.items()):
        return None
    for name, original, (value, stacked, _) in zip(
        names, op.inputs, pfor_input.inputs, strict=True
    ):
        if name in saved:  # computed below
            continue
        if original.shape.rank is None:
            return None
        if is_absent(original):
            folded[name] = tf.zeros([0], original.dtype)
        elif name in rows.inputs:
            folded[name] = _folded(value, stacked, rows.inputs[name], count, original.shape)
        elif stacked:
            return None
        else:
            folded[name] = value
    if rows.saved is not None:
        folded |= rows.saved(folded, op)
    results = _tf_private.call_like(op, [folded[name] for name in names])
    unfolded = {}
    for name, original, result in zip(outputs, op.outputs, results, strict=True):
        if original.shape.rank == 1 and is_absent(original):  # an output that was not asked for
            unfolded[name] = _tf_private.pfor_output(tf.zeros([0], original.dtype), False)
        elif name in rows.outputs:
            axis = rows.outputs[name]
            unfolded[name] = _tf_private.pfor_output(
                _unfolded(result, axis, count, original.shape), True
            )
    return unfolded


def _folded(
    value: tf.Tensor, stacked: bool, axis: int, count: Any, shape: tf.TensorShape
) -> tf.Tensor:
    """[..., n·B, ...] of a value [n, ..., B, ...], or of [..., B, ...] if it is not stacked."""
    if stacked:
        order = [*range(1, axis + 1), 0, *range(axis + 1, shape.rank + 1)]
        value = tf.transpose(value, order)
    else:
        multiples = [count if n == axis else 1 for n in range(shape.rank + 1)]
        value = tf.tile(tf.expand_dims(value, axis), multiples)
    sizes = tf.unstack(tf.shape(value), num=shape.rank + 1)
    merged = [*sizes[:axis], sizes[axis] * sizes[axis + 1], *sizes[axis + 2 :]]
    value = tf.reshape(value, merged)
    value.set_shape([*shape[:axis], None, *shape[axis + 1 :]])
    return value


def _unfolded(value: tf.Tensor, axis: int, count: Any, shape: tf.TensorShape) -> tf.Tensor:
    """[n, ..., B, ...] of a result [..., n·B, ...]."""
    sizes = [tf.shape(value)[n] if size is None else size for n, size in enumerate(shape)]
    batch = shape[axis]
    if batch is None:
        batch = sizes[axis] // tf.maximum(count, 1)
    split = [*sizes[:axis], count, batch, *sizes[axis + 1 :]]
    order = [axis, *range(axis), *range(axis + 1, shape.rank + 1)]
    value = tf.transpose(tf.reshape(value, split), order)
    value.set_shape([None, *shape])
    return value


def _loop(pfor_input: Any) -> list[Any]:
    """The outputs from a call of the op for each iteration."""
    op, count = pfor_input.op, _tf_private.iterations(pfor_input)

    def body(i: tf.Tensor, arrays: list[Any]) -> Any:
        inputs = [value[i] if stacked else value for value, stacked, _ in pfor_input.inputs]
        results = _tf_private.call_like(op, inputs)
        written = [a.write(i, result) for a, result in zip(arrays, results, strict=True)]
        return i + 1, written

    arrays = [tf.TensorArray(o.dtype, size=count, element_shape=o.shape) for o in op.outputs]
    _, arrays = tf.while_loop(lambda i, _: i < count, body, (0, arrays), maximum_iterations=count)
    return [_tf_private.pfor_output(array.stack(), True) for array in arrays]
