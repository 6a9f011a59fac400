"""The ops of two layers, one for each direction, as one op."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.composite.keras_ops import BACKWARD, bidirectional_name
from tf_lstm_ops.keras import cudnn_path
from tf_lstm_ops.keras.op_inputs import optional

_Run = Callable[[str, dict[str, Any]], list[Any]]

_run: ContextVar[_Run] = ContextVar("run", default=cudnn_path.run)
_apart: ContextVar[bool] = ContextVar("apart", default=False)


def run(op: str, arguments: dict[str, Any]) -> list[Any]:
    """Calls the op of a layer; within `joined`, with that of another layer.

    Args:
      op: the op's name without its namespace.
      arguments: as of `cudnn_path.run`.

    Returns:
      The output and the final states. Within `joined` the output is that of both layers.
    """
    return _run.get()(op, op_definitions.converted(op, arguments))


class NotJoinedError(RuntimeError):
    """A layer has not called its op."""


def joined(forward: Callable[[], Any], backward: Callable[[], Any]) -> tuple[Any, Any]:
    """Runs two layers, whose ops become one op.

    What the layers do before and after their ops stays: the second layer runs where the first one
    calls its op.

    Args:
      forward: runs a layer that calls `run` once.
      backward: runs a layer of equal configuration that reads backwards.

    Returns:
      What the two functions return. The output of each layer is that of both: the second one's
      columns are behind those of the first one, at the same time steps.

    Raises:
      NotJoinedError: a function does not call `run`.
    """
    second: list[Any] = []
    states: list[Any] = []

    def of_forward(op: str, arguments: dict[str, Any]) -> list[Any]:
        def of_backward(_: str, others: dict[str, Any]) -> list[Any]:
            output, *found = cudnn_path.run(bidirectional_name(op), _both(op, arguments, others))
            half = len(found) // 2
            states.extend([output, *found[:half]])
            return [output, *found[half:]]

        with _set(_run, of_backward):
            second.append(backward())
        if not states:
            raise NotJoinedError("the second layer has not called its op")
        return states

    with _set(_run, of_forward):
        first = forward()
    if not second:
        raise NotJoinedError("the first layer has not called its op")
    return first, second[0]


def _both(op: str, first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the op of both layers."""
    arguments = {name: value for name, value in first.items() if name != "go_backwards"}
    for name in op_definitions.inputs(op):
        if name != "mask":
            arguments[BACKWARD + name] = second[name]
    if second["x"] is first["x"]:
        arguments[f"{BACKWARD}x"] = optional(None, first["x"].dtype)
    return arguments


def are_apart() -> bool:
    """Whether each layer of a Bidirectional must call its own op.

    Returns:
      True within `apart`.
    """
    return _apart.get()


def apart() -> contextlib.AbstractContextManager[None]:
    """A context for converters that know the ops of single layers only.

    Returns:
      The context.
    """
    return _set(_apart, True)


@contextlib.contextmanager
def _set(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def split(output: tf.Tensor) -> list[tf.Tensor]:
    """The outputs of the two layers.

    Args:
      output: that of both, [B, T, 2P] or [B, 2P].

    Returns:
      Two tensors, [B, T, P] or [B, P].
    """
    halves: list[tf.Tensor] = tf.split(output, 2, axis=-1)
    return halves
