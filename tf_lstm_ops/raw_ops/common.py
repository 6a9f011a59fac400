"""Calls of ops, for the functions of `raw_ops` and the Keras layers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from tf_lstm_ops import _placement, converters, dialects, op_definitions
from tf_lstm_ops.raw_ops import sections, stock_cudnn

F = TypeVar("F", bound=Callable[..., Any])

_ARRAYS = (np.ndarray, np.generic)  # converted to the type of the tensors beside them
_LENGTHS = {"seq_len_max": (tf.int64, "x"), "sequence_lengths": (tf.int32, "input")}


def public(function: F) -> F:
    """Completes the docstring of a function of `raw_ops`, and keeps AutoGraph from converting it.

    AutoGraph would add its own variable to locals(), which the functions pass on.

    Args:
      function: the function to decorate.

    Returns:
      A function with the same arguments and results.
    """
    if function.__doc__:  # python -OO removes it
        function.__doc__ = sections.completed(function)
    converted: F = tf.autograph.experimental.do_not_convert(function)
    return converted


def _dtype_of(value: Any) -> tf.DType | None:
    """The type of an argument; None for plain Python values."""
    dtype = getattr(value, "dtype", None)
    return None if dtype is None else _base(dtype)


@functools.lru_cache(maxsize=128)
def _base(dtype: Any) -> tf.DType:
    return tf.as_dtype(dtype).base_dtype


def common_dtype(values: Iterable[Any]) -> tf.DType | None:
    """The type of arguments that must have the same type.

    Args:
      values: tensors, variables, arrays and plain Python values.

    Returns:
      The type of the first tensor or variable, else of the first array; None without either.
    """
    typed = [v for v in values if hasattr(v, "dtype")]
    tensors = (v for v in typed if not isinstance(v, _ARRAYS))
    return _dtype_of(next(tensors, typed[0] if typed else None))


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


def _map_tensors(
    op: str, arguments: dict[str, Any], convert: Callable[[str, Any, tf.DType | None], Any]
) -> dict[str, Any]:
    """The arguments, each tensor replaced by convert(name, value, type).

    The type is the required one or, where there is none, that of the tensors beside it.
    """
    inputs = op_definitions.inputs(op)
    common = common_dtype(v for _, v, required in _tensors(op, arguments) if required is None)

    def argument(name: str, value: Any) -> Any:
        if (declared := inputs.get(name)) is None:  # an attribute
            return value
        if declared.is_list:
            dtype = declared.dtype or common
            return [convert(f"{name}[{n}]", v, dtype) for n, v in enumerate(value)]
        return convert(name, value, declared.dtype or common)

    return {name: argument(name, value) for name, value in arguments.items()}


def call(op: str, arguments: dict[str, Any]) -> Any:
    """Calls an op after a check of the types of its tensors.

    Arrays and plain Python values are converted to the type of the tensors beside them, or to the
    only type that the op takes there.

    Args:
      op: the op's name without its namespace.
      arguments: inputs, attributes and ``name`` by name.

    Returns:
      The op's output, or a namedtuple of all its outputs.

    Raises:
      InvalidArgumentError: a tensor has a type that its op does not take, or that differs from the
        type of the first tensor; or another value cannot be converted.
    """
    common: tf.DType | None = None
    has_others = False
    for name, value, required in _tensors(op, arguments):
        dtype = _dtype_of(value)
        if dtype is None or isinstance(value, _ARRAYS):
            has_others = True
            continue
        if required is None:
            common = required = common or dtype
        if dtype is not required and dtype != required:
            raise _wrong_type(name, required, f"is {dtype.name}")
    return run(op, _with_tensors(op, arguments) if has_others else arguments)


def _wrong_type(name: str, required: tf.DType, problem: str) -> tf.errors.InvalidArgumentError:
    text = f"{name} must be {required.name} but {problem}"
    return tf.errors.InvalidArgumentError(None, None, text)


def _with_tensors(op: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with tensors for arrays and plain Python values."""

    def convert(name: str, value: Any, required: tf.DType | None) -> Any:
        dtype = _dtype_of(value)
        # Where no argument has a type, TensorFlow chooses that of Python values.
        if required is None or not (dtype is None or isinstance(value, _ARRAYS)):
            return value
        if dtype is not None and (problem := _problem(value, dtype, required)):
            raise _wrong_type(name, required, problem)
        try:
            return tf.convert_to_tensor(value, required)
        except (OverflowError, TypeError, ValueError) as error:
            text = f"{name} cannot be converted to {required.name}: {error}"
            raise tf.errors.InvalidArgumentError(None, None, text) from error

    return _map_tensors(op, arguments, convert)


def _problem(array: Any, dtype: tf.DType, required: tf.DType) -> str | None:
    """Why an array would have other numbers, beyond their rounding, after its conversion.

    TensorFlow itself drops imaginary parts, fractions and the high bits of integers.
    """
    if dtype.is_complex or dtype == tf.string:
        return f"is {dtype.name}"
    if required.is_floating:
        return None
    with np.errstate(invalid="ignore"):  # NaN and infinity have no integer
        same = np.array_equal(array, array.astype(required.as_numpy_dtype))
    return None if same else "has elements that this type cannot hold"


def run(op: str, arguments: dict[str, Any]) -> Any:
    """Calls an op or, where only plain TensorFlow ops may run, its composite.

    On an NVIDIA GPU a call takes TensorFlow's own op for cuDNN (see `stock_cudnn`) or the composite
    (see `_placement.needs_plain_ops`). Calls without either take the fused op.

    Args:
      op: the op's name without its namespace.
      arguments: inputs, attributes and ``name`` by name, with tensors of the right types.

    Returns:
      The op's output, or a namedtuple of all its outputs.

    Raises:
      ValueError: a converter that does not know the op traces the call.
    """
    if converters.plain_ops_required(op):
        return _run_plain(op, arguments)
    if _placement.may_use_cuda():
        try:
            given = _converted(op, arguments)
            if stock_cudnn.covers(op, given):
                compute = functools.partial(stock_cudnn.call, op)
                return _run_plain(op, _with_checked_lengths(given), compute)
            if _placement.needs_plain_ops(op, given):
                return _run_plain(op, _with_checked_lengths(given))
        except ValueError:
            pass  # a size is not static, or an argument is wrong: the error is that of the fused op
    return op_definitions.function(op)(**arguments)


def _with_checked_lengths(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with lengths that are checked as the kernels check them."""
    for name, (dtype, sequence) in _LENGTHS.items():
        if name not in arguments:
            continue
        lengths = tf.convert_to_tensor(arguments[name], dtype)
        axis = 0 if arguments.get("time_major", True) else 1
        time = tf.shape(arguments[sequence], lengths.dtype)[axis]
        valid = tf.reduce_all((lengths >= 0) & (lengths <= time))
        if tf.executing_eagerly():
            if not valid:
                raise ValueError(name)
            continue
        text = f"{name} must be between 0 and the number of steps"
        with tf.control_dependencies([tf.debugging.Assert(valid, [text, time, lengths])]):
            arguments = {**arguments, name: tf.identity(lengths)}
    return arguments


def _run_plain(
    op: str, arguments: dict[str, Any], compute: Callable[..., Any] | None = None
) -> Any:
    """Results of other ops, with the names and the static shapes of the op's results."""
    arguments = _converted(op, arguments)
    expected = _op_results(op, arguments)
    name = arguments.pop("name", None) or op_definitions.function(op).__name__
    with tf.name_scope(name):
        results = (compute or dialects.COMPOSITES[op])(**arguments)
    for result, like in zip(results, tf.nest.flatten(expected), strict=True):
        result.set_shape(like.shape)
    return tf.nest.pack_sequence_as(expected, results)


def _converted(op: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments converted as the op converts them: tensors, and attributes in float32."""

    def tensor(_: str, value: Any, required: tf.DType | None) -> tf.Tensor:
        return tf.convert_to_tensor(value, _dtype_of(value) or required)

    return {
        name: float(np.float32(value)) if isinstance(value, float) else value
        for name, value in _map_tensors(op, arguments, tensor).items()
    }


def _op_results(op: str, arguments: dict[str, Any]) -> Any:
    """The op's outputs, traced in a separate graph. This runs the op's checks of shapes."""

    def placeholder(value: Any) -> Any:
        return tf.compat.v1.placeholder(value.dtype, value.shape) if tf.is_tensor(value) else value

    with tf.Graph().as_default():
        return op_definitions.function(op)(**tf.nest.map_structure(placeholder, arguments))
