"""Where plain TensorFlow ops must take the place of the fused ones: in XLA, in portable exports."""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

import tensorflow as tf

# Nothing public tells whether XLA will compile what is being traced.
from tensorflow.python.ops import control_flow_ops, control_flow_util

# A tf.function that was traced before would take its trace along into XLA, fused op and all, and
# the other way round. TensorFlow has a switch against that, for TPUs: with it a function that looks
# for a trace takes only one made in the same XLA context.
control_flow_ops.XLAControlFlowContext.RequiresUniqueFunctionRetracing = lambda _: True

_asked_for = contextvars.ContextVar("tf_lstm_ops_plain_ops", default=False)


@contextlib.contextmanager
def plain_ops() -> Iterator[None]:
    """Within it, whatever this thread runs or traces consists of plain TensorFlow ops."""
    token = _asked_for.set(True)
    try:
        yield
    finally:
        _asked_for.reset(token)


def plain_ops_required() -> bool:
    """Whether a call must consist of plain TensorFlow ops: XLA has no kernels of the fused ones."""
    if _asked_for.get() or tf.executing_eagerly():
        return _asked_for.get()
    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())
