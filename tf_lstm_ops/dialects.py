"""The registry of the dialects: what Python knows of each op of this package.

A dialect is a family of ops with one contract. In Python a new dialect is
raw_ops/<dialect>.py, composite/<dialect>.py, gradients/<dialect>.py and vectorized/<dialect>.py; it
is registered here, its functions are exported by raw_ops/__init__.py, and its cases for a device
are added to selftest/ops.py. Inputs, types and attributes of its ops come from their native
definitions (op_definitions.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from tf_lstm_ops import _tf_private
from tf_lstm_ops.composite import block_cell, cudnn_ops, keras_ops, mpsgraph
from tf_lstm_ops.composite.common import Composite
from tf_lstm_ops.gradients import block_cell as block_cell_gradients
from tf_lstm_ops.gradients import cudnn_rnn as cudnn_rnn_gradients
from tf_lstm_ops.gradients import keras as keras_gradients
from tf_lstm_ops.gradients import mpsgraph as mpsgraph_gradients
from tf_lstm_ops.gradients.common import Gradient
from tf_lstm_ops.vectorized import block_cell as block_cell_converters
from tf_lstm_ops.vectorized import cudnn_rnn as cudnn_rnn_converters
from tf_lstm_ops.vectorized import keras as keras_converters
from tf_lstm_ops.vectorized import mpsgraph as mpsgraph_converters
from tf_lstm_ops.vectorized.common import Converter


class Dialect(NamedTuple):
    """A family of ops with one contract.

    Attributes:
      composites: functions that compute the ops in plain TensorFlow ops, for XLA and portable
        exports, by the op's name without its namespace. The keys are all ops of the dialect but
        those of ``no_composite``.
      gradients: functions for ``tf.RegisterGradient``, by the op's name in a graph. The gradient of
        an op is a fused op. The gradient of a gradient op is the gradient of its composite.
      converters: functions that run an op for all iterations of tf.vectorized_map, by the op's name
        in a graph.
      not_differentiable: names in a graph of ops without a gradient.
      no_composite: ops that read what only a kernel writes.
    """

    composites: Mapping[str, Composite]
    gradients: Mapping[str, Gradient]
    converters: Mapping[str, Converter]
    not_differentiable: tuple[str, ...] = ()
    no_composite: tuple[str, ...] = ()


DIALECTS: dict[str, Dialect] = {
    "block_cell": Dialect(
        block_cell.COMPOSITES,
        block_cell_gradients.GRADIENTS,
        block_cell_converters.CONVERTERS,
    ),
    "cudnn_rnn": Dialect(
        cudnn_ops.COMPOSITES,
        cudnn_rnn_gradients.GRADIENTS,
        cudnn_rnn_converters.CONVERTERS,
        cudnn_rnn_gradients.NOT_DIFFERENTIABLE,
        no_composite=("CudnnRNNDropoutMask",),  # which tests dropout
    ),
    "keras": Dialect(
        keras_ops.COMPOSITES,
        keras_gradients.GRADIENTS,
        keras_converters.CONVERTERS,
    ),
    "mpsgraph": Dialect(
        mpsgraph.COMPOSITES,
        mpsgraph_gradients.GRADIENTS,
        mpsgraph_converters.CONVERTERS,
    ),
}

COMPOSITES: dict[str, Composite] = {
    op: composite for dialect in DIALECTS.values() for op, composite in dialect.composites.items()
}


def register_gradients() -> None:
    """Registers the gradients and the converters of all dialects with TensorFlow.

    A gradient of our own ops that an earlier import in the process registered stays. A gradient of
    a stock op is used where nobody registers another one.
    """
    offered: dict[str, Gradient] = {}
    for dialect in DIALECTS.values():
        for op, gradient in dialect.gradients.items():
            if not op.startswith("TfLstmOps>"):
                offered[op] = gradient
                continue
            with contextlib.suppress(KeyError):  # registered already
                tf.RegisterGradient(op)(gradient)
        for op in dialect.not_differentiable:
            with contextlib.suppress(KeyError):
                tf.no_gradient(op)
        for op, convert in dialect.converters.items():
            _tf_private.register_pfor(op, convert)
    _tf_private.offer_gradients(offered, cudnn_rnn_gradients.AROUND)
