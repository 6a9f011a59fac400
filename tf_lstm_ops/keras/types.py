"""Types of the layers' arguments: what ``keras.layers`` takes there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import keras
import tensorflow as tf

from tf_lstm_ops import _placement

# Aliases before those that they consist of.
__all__ = [
    *("Activation", "Initializer", "Regularizer", "Constraint", "Normalization", "GPUPath"),
    *("Sequences", "Results", "Config"),
]

# What computes a call of a layer on a GPU.
GPUPath: TypeAlias = Literal[_placement.Path, "Keras' own loop"]

Config: TypeAlias = dict[str, Any]

Activation: TypeAlias = "str | Callable[[tf.Tensor], tf.Tensor] | None"
Initializer: TypeAlias = "str | Config | keras.Initializer | Callable[..., tf.Tensor]"
Regularizer: TypeAlias = (
    "str | Config | keras.Regularizer | Callable[[tf.Tensor], tf.Tensor] | None"
)
Constraint: TypeAlias = "str | Config | Callable[[tf.Tensor], tf.Tensor] | None"
Normalization: TypeAlias = Literal["haste", "addons"]

# A batch of sequences, and the results of a layer: the output, or a tuple of it and the states.
Sequences: TypeAlias = "tf.Tensor | tf.RaggedTensor"
Results: TypeAlias = "tf.Tensor | tf.RaggedTensor | tuple[tf.Tensor | tf.RaggedTensor, ...]"
