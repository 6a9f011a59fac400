"""Whether plain TensorFlow ops must replace the fused ops, as in XLA and in portable exports."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from tf_lstm_ops import _tf_private

_tf_private.separate_xla_traces()

_in_pfor = contextvars.ContextVar("tf_lstm_ops_differentiable_in_pfor", default=False)
_unrolled_steps = contextvars.ContextVar("tf_lstm_ops_unrolled_steps", default=0)
_asked_for = contextvars.ContextVar("tf_lstm_ops_plain_ops", default=False)


@contextlib.contextmanager
def _with(variable: contextvars.ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def plain_ops() -> contextlib.AbstractContextManager[None]:
    """A context in which this thread runs and traces plain TensorFlow ops only.

    Returns:
      The context.
    """
    return _with(_asked_for, True)


def in_derivatives() -> contextlib.AbstractContextManager[None]:
    """A context in which loops are such that TensorFlow's pfor can vectorize their gradients.

    Returns:
      The context.
    """
    return _with(_in_pfor, True)


def differentiable_in_pfor() -> bool:
    """Whether a loop must be such that TensorFlow's pfor can vectorize its gradients.

    Returns:
      True within `in_derivatives`.
    """
    return _in_pfor.get()


def unrolled(steps: int) -> contextlib.AbstractContextManager[None]:
    """A context in which composites write sequences of few steps as one graph without a loop.

    Args:
      steps: the longest such sequence. A sequence of an unknown number of steps stays a loop.

    Returns:
      The context.
    """
    return _with(_unrolled_steps, steps)


def is_unrolled(steps: int | None) -> bool:
    """Whether a sequence is written as one graph without a loop.

    Args:
      steps: the number of its steps, None if unknown while tracing.

    Returns:
      True within `unrolled`, if the sequence has few enough steps.
    """
    return steps is not None and 0 < steps <= _unrolled_steps.get()


def plain_ops_required() -> bool:
    """Whether a call must consist of plain TensorFlow ops.

    Returns:
      True within `plain_ops`, and while tracing for XLA, which has no kernels of the fused ops.
    """
    if _asked_for.get() or tf.executing_eagerly():
        return _asked_for.get()
    return _tf_private.is_traced_for_xla()
