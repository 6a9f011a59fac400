"""The activation functions that the ops' attributes name, of plain TensorFlow ops.

The names and equations are those of the native library.
"""
# They are in cc/core/activation.h.

from __future__ import annotations

import math
from collections.abc import Callable

import tensorflow as tf

Function = Callable[[tf.Tensor], tf.Tensor]


def _hard_sigmoid_fifth(x: tf.Tensor) -> tf.Tensor:
    """Hard sigmoid with the derivative 0 at its kinks. tf.clip_by_value has another derivative."""
    y = 0.2 * x + 0.5
    return tf.where(y <= 0, tf.zeros_like(y), tf.where(y >= 1, tf.ones_like(y), y))


# Of KerasLSTM. tf.nn.leaky_relu and tf.nn.gelu have a constant in float32, and tf.nn.silu has a
# gradient of its own.
KERAS: dict[str, Function] = {
    "linear": tf.identity,
    "relu": tf.nn.relu,
    "tanh": tf.tanh,
    "sigmoid": tf.sigmoid,
    "hard_sigmoid": lambda z: tf.nn.relu6(z + 3) / 6,
    "hard_tanh": lambda z: tf.clip_by_value(z, -1, 1),
    "softsign": lambda z: z / (1 + tf.abs(z)),
    "elu": tf.nn.elu,
    "leaky_relu": lambda z: tf.where(z > 0, z, z / 5),
    "silu": lambda z: z * tf.sigmoid(z),
    # In this form TensorFlow Lite's converter knows it; TensorFlow Lite has no Erf.
    "gelu": lambda z: 0.5 * z * (1 + tf.math.erf(z / math.sqrt(2))),
}

# Of MPSGraphLSTM. Its hard_sigmoid has another slope than Keras'.
MPSGRAPH: dict[str, Function] = {
    "none": KERAS["linear"],
    **{name: KERAS[name] for name in ("relu", "tanh", "sigmoid")},
    "hard_sigmoid": _hard_sigmoid_fifth,
}
