"""The inputs, outputs and attributes of the ops, as the native library declares them.

Everything is read from TensorFlow's registry of op definitions, which the native library fills, so
that no signature is written a second time in Python. An op is named without its namespace:
"BlockLSTM" is ``TfLstmOps>BlockLSTM``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tf_lstm_ops import _library, _placement, _tf_private

NAMESPACE = "TfLstmOps>"


class Input(NamedTuple):
    """An input of an op.

    Attributes:
      dtype: the only type that it may have; None where it has the type T of the other inputs.
      is_list: whether it is a list of tensors.
    """

    dtype: tf.DType | None
    is_list: bool


@functools.cache
def function(op: str) -> Callable[..., Any]:
    """The function that TensorFlow generates for an op.

    Args:
      op: the op's name.

    Returns:
      A function of the op's inputs and attributes, in this order or by name. It returns the op's
      output, or a namedtuple of all its outputs.
    """
    generated = _library.load()
    return _placement.placed(op, _tf_private.op_function(generated, f"TfLstmOps_{op}"))


@functools.cache
def inputs(op: str) -> dict[str, Input]:
    """The inputs of an op.

    Args:
      op: the op's name.

    Returns:
      The inputs by name, in the op's order.
    """
    return {
        argument.name: Input(
            tf.as_dtype(argument.type) if argument.type else None, bool(argument.number_attr)
        )
        for argument in _definition(op).input_arg
    }


@functools.cache
def outputs(op: str) -> tuple[str, ...]:
    """The outputs of an op.

    Args:
      op: the op's name.

    Returns:
      The names of the outputs, in the op's order.
    """
    return tuple(argument.name for argument in _definition(op).output_arg)


@functools.cache
def attributes(op: str) -> tuple[str, ...]:
    """The attributes that a call of an op passes: all but its types and the lengths of its lists.

    Args:
      op: the op's name.

    Returns:
      The names of the attributes, in the op's order.
    """
    definition = _definition(op)
    lengths = {argument.number_attr for argument in definition.input_arg}
    return tuple(
        attribute.name
        for attribute in definition.attr
        if attribute.type != "type" and attribute.name not in lengths
    )


@functools.cache
def defaults(op: str) -> dict[str, Any]:
    """The default values of the attributes of an op.

    Args:
      op: the op's name.

    Returns:
      The values of those of `attributes` that have one, by name.
    """
    _library.load()
    found = {attribute.name: attribute.default_value for attribute in _definition(op).attr}
    kinds = {name: found[name].WhichOneof("value") for name in attributes(op)}
    values = {name: getattr(found[name], kind) for name, kind in kinds.items() if kind}
    return {name: v.decode() if isinstance(v, bytes) else v for name, v in values.items()}


def converted(op: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an op with flags and numbers of the types that its attributes have.

    Keras takes what is true or false for a flag, such as None, 0, 1 and NumPy's booleans.

    Args:
      op: the op's name.
      arguments: its inputs and attributes by name.

    Returns:
      The arguments; those of attributes that are flags are bool, those that are numbers float or
      int.
    """
    kinds = _attribute_types(op)
    return {
        name: kinds[name](value) if name in kinds else value for name, value in arguments.items()
    }


@functools.cache
def _attribute_types(op: str) -> dict[str, Callable[[Any], Any]]:
    kinds: dict[str, Callable[[Any], Any]] = {"bool": bool, "float": float, "int": int}
    found = {attribute.name: attribute.type for attribute in _definition(op).attr}
    return {name: kinds[found[name]] for name in attributes(op) if found[name] in kinds}


@functools.cache
def choices(op: str, attribute: str) -> tuple[str, ...]:
    """The values that an attribute may have.

    Args:
      op: the op's name.
      attribute: the name of one of its attributes, whose values are text.

    Returns:
      The values, in the order of the definition.
    """
    _library.load()
    (found,) = [a for a in _definition(op).attr if a.name == attribute]
    return tuple(value.decode() for value in found.allowed_values.list.s)


def _definition(op: str) -> Any:
    return _tf_private.op_definition(f"{NAMESPACE}{op}")
