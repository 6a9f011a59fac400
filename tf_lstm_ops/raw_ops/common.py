"""How the functions of `raw_ops`, and the Keras layers, call their ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import _library, composite

# Autograph would add a variable of its own to the locals() that the functions pass on.
as_written = tf.autograph.experimental.do_not_convert

# Types of the tensors that are not of type T.
_DTYPES = {
    "seq_len_max": tf.int64,
    "sequence_lengths": tf.int32,
    "host_reserved": tf.int8,
    "num_layers": tf.int32,
    "num_units": tf.int32,
    "input_size": tf.int32,
}

# Arguments that are not tensors.
_ATTRIBUTES = frozenset(
    {
        *("forget_bias", "cell_clip", "use_peephole"),
        *("go_backwards", "zero_output_for_mask", "return_sequences", "training"),
        *("rnn_mode", "input_mode", "direction", "dropout", "seed", "seed2", "num_proj"),
        *("is_training", "time_major", "T", "S"),
        *("num_params", "num_params_weights", "num_params_biases", "name"),
        *("reverse", "bidirectional", "produce_cell", "forget_gate_last", "activation"),
        *(f"{gate}_gate_activation" for gate in ("input", "forget", "cell", "output")),
    }
)


def optional(value: Any, dtype: Any) -> Any:
    """An op's optional argument: absent, it has the shape [0]."""
    return tf.zeros([0], dtype) if value is None else tf.convert_to_tensor(value)


def dtype_of(value: Any) -> tf.DType | None:
    """The type of a tensor, variable or array; None for plain Python numbers and lists."""
    dtype = getattr(value, "dtype", None)
    return None if dtype is None else tf.as_dtype(dtype)


def _tensors(arguments: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The tensors among the arguments, with those of lists one by one."""
    for name, value in arguments.items():
        if name in _ATTRIBUTES:
            continue
        if name in ("weights", "biases"):
            yield from ((f"{name}[{n}]", v) for n, v in enumerate(value))
        else:
            yield name, value


def call(function: str, arguments: dict[str, Any]) -> Any:
    """Calls a generated op function after checking the types of its tensors.

    Raises:
      InvalidArgumentError: a tensor is of another type than its op takes, or than the first one.
    """
    common: tf.DType | None = None
    for name, value in _tensors(arguments):
        dtype, expected = dtype_of(value), _DTYPES.get(name)
        if expected is None:
            common = expected = common or dtype
        if dtype is not None and expected is not None and dtype != expected:
            raise tf.errors.InvalidArgumentError(
                None, None, f"{name} must be {expected.name} but is {dtype.name}"
            )
    return run(function, arguments)


def run(function: str, arguments: dict[str, Any]) -> Any:
    """Calls a generated op function or, where only plain TensorFlow ops may run, its composite."""
    if composite.plain_ops_required():
        return _run_plain(function, arguments)
    return getattr(_library.load(), function)(**arguments)


def _run_plain(function: str, arguments: dict[str, Any]) -> Any:
    """The composite's results, with the names and the static shapes of the op's.

    Raises:
      ValueError: as the op, where a shape that is known already is wrong.
    """
    arguments = _converted(arguments)
    expected = _op_results(function, arguments)
    with tf.name_scope(arguments.pop("name", None) or function):
        results = composite.COMPOSITES[function](**arguments)
    for result, like in zip(results, tf.nest.flatten(expected), strict=True):
        result.set_shape(like.shape)
    return tf.nest.pack_sequence_as(expected, results)


def _converted(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the op has them: tensors, and numbers of float32 as attributes."""
    common = next((dtype_of(v) for n, v in _tensors(arguments) if n not in _DTYPES), None)

    def convert(name: str, value: Any) -> Any:
        if name in _ATTRIBUTES:
            return float(np.float32(value)) if isinstance(value, float) else value
        if name in ("weights", "biases"):
            return [convert(f"{name}[{n}]", v) for n, v in enumerate(value)]
        return tf.convert_to_tensor(value, dtype_of(value) or _DTYPES.get(name, common))

    return {name: convert(name, value) for name, value in arguments.items()}


def _op_results(function: str, arguments: dict[str, Any]) -> Any:
    """What the op would return, traced in a graph of its own: its checks of shapes are made."""

    def placeholder(value: Any) -> Any:
        return tf.compat.v1.placeholder(value.dtype, value.shape) if tf.is_tensor(value) else value

    with tf.Graph().as_default():
        return getattr(_library.load(), function)(**tf.nest.map_structure(placeholder, arguments))
