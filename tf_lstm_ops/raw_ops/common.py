"""Calls of ops, for the functions of `raw_ops` and the Keras layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import composite, converters, dialects, op_definitions

# AutoGraph would add its own variable to locals(), which the functions of `raw_ops` pass on.
as_written = tf.autograph.experimental.do_not_convert


def optional(value: Any, dtype: Any) -> Any:
    """Converts an optional argument to an input of an op. An absent input has the shape [0].

    Args:
      value: a tensor, or a value that can be converted to one, or None if it is absent.
      dtype: the type of the absent argument.

    Returns:
      A tensor.
    """
    return tf.zeros([0], dtype) if value is None else tf.convert_to_tensor(value)


def dtype_of(value: Any) -> tf.DType | None:
    """The type of an argument.

    Args:
      value: a tensor, variable or array, or plain Python values.

    Returns:
      The type; None for plain Python values, which are converted to the required type.
    """
    dtype = getattr(value, "dtype", None)
    return None if dtype is None else tf.as_dtype(dtype)


def _tensors(op: str, arguments: dict[str, Any]) -> Iterator[tuple[str, Any, tf.DType | None]]:
    """The tensors among the arguments, those of lists one by one: name, value, required type."""
    inputs = op_definitions.inputs(op)
    for name, value in arguments.items():
        if (declared := inputs.get(name)) is None:  # an attribute
            continue
        if declared.is_list:
            yield from ((f"{name}[{n}]", v, declared.dtype) for n, v in enumerate(value))
        else:
            yield name, value, declared.dtype


def call(op: str, arguments: dict[str, Any]) -> Any:
    """Calls an op after a check of the types of its tensors.

    Args:
      op: the op's name without its namespace.
      arguments: inputs, attributes and ``name`` by name.

    Returns:
      The op's output, or a namedtuple of all its outputs.

    Raises:
      InvalidArgumentError: a tensor has a type that its op does not take, or that differs from the
        type of the first tensor.
    """
    common: tf.DType | None = None
    for name, value, expected in _tensors(op, arguments):
        dtype = dtype_of(value)
        if expected is None:
            common = expected = common or dtype
        if dtype is not None and expected is not None and dtype != expected:
            raise tf.errors.InvalidArgumentError(
                None, None, f"{name} must be {expected.name} but is {dtype.name}"
            )
    return run(op, arguments)


def run(op: str, arguments: dict[str, Any]) -> Any:
    """Calls an op or, where only plain TensorFlow ops may run, its composite.

    Args:
      op: the op's name without its namespace.
      arguments: inputs, attributes and ``name`` by name, with tensors of the right types.

    Returns:
      The op's output, or a namedtuple of all its outputs.

    Raises:
      ValueError: a converter that does not know the op traces the call.
    """
    if composite.plain_ops_required():
        return _run_plain(op, arguments)
    if not tf.executing_eagerly():
        converters.require_none(op)
    return op_definitions.function(op)(**arguments)


def _run_plain(op: str, arguments: dict[str, Any]) -> Any:
    """The composite's results, with the names and the static shapes of the op's results.

    Raises:
      ValueError: a shape that is known while tracing is wrong; the text is the op's.
    """
    arguments = _converted(op, arguments)
    expected = _op_results(op, arguments)
    name = arguments.pop("name", None) or op_definitions.function(op).__name__
    with tf.name_scope(name):
        results = dialects.COMPOSITES[op](**arguments)
    for result, like in zip(results, tf.nest.flatten(expected), strict=True):
        result.set_shape(like.shape)
    return tf.nest.pack_sequence_as(expected, results)


def _converted(op: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments converted as the op converts them: tensors, and attributes in float32."""
    inputs = op_definitions.inputs(op)
    typed = (dtype_of(v) for _, v, required in _tensors(op, arguments) if required is None)
    common = next(typed, None)

    def tensor(value: Any, required: tf.DType | None) -> tf.Tensor:
        return tf.convert_to_tensor(value, dtype_of(value) or required or common)

    def convert(name: str, value: Any) -> Any:
        if (declared := inputs.get(name)) is None:
            return float(np.float32(value)) if isinstance(value, float) else value
        if declared.is_list:
            return [tensor(v, declared.dtype) for v in value]
        return tensor(value, declared.dtype)

    return {name: convert(name, value) for name, value in arguments.items()}


def _op_results(op: str, arguments: dict[str, Any]) -> Any:
    """The op's outputs, traced in a separate graph. This runs the op's checks of shapes."""

    def placeholder(value: Any) -> Any:
        return tf.compat.v1.placeholder(value.dtype, value.shape) if tf.is_tensor(value) else value

    with tf.Graph().as_default():
        return op_definitions.function(op)(**tf.nest.map_structure(placeholder, arguments))
