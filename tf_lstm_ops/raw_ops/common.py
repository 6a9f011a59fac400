"""How the functions of `raw_ops` call their ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tf_lstm_ops import _library

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
        *("rnn_mode", "input_mode", "direction", "dropout", "seed", "seed2", "num_proj"),
        *("is_training", "time_major", "T", "S"),
        *("num_params", "num_params_weights", "num_params_biases", "name"),
    }
)


def _dtype_of(value: Any) -> tf.DType | None:
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
        dtype, expected = _dtype_of(value), _DTYPES.get(name)
        if expected is None:
            common = expected = common or dtype
        if dtype is not None and expected is not None and dtype != expected:
            raise tf.errors.InvalidArgumentError(
                None, None, f"{name} must be {expected.name} but is {dtype.name}"
            )
    return getattr(_library.load(), function)(**arguments)
