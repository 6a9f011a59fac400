"""Functions that several composites use."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from tf_lstm_ops import _tf_private
from tf_lstm_ops.composite.context import in_derivatives

# A function of the inputs and attributes of an op by name, in the op's order. It returns a list of
# all outputs of the op.
Composite = Callable[..., list[tf.Tensor]]


def compute_dtype(dtype: tf.DType) -> tf.DType:
    """The type in which the kernels compute.

    Args:
      dtype: the type of the op's tensors: half, bfloat16, float or double.

    Returns:
      float64 for double, float32 for the others.
    """
    return tf.float64 if dtype == tf.float64 else tf.float32


def cast(values: Any, dtype: tf.DType) -> Any:
    """Casts the floating-point tensors of a flat sequence.

    Args:
      values: tensors.
      dtype: the type to cast to.

    Returns:
      List of tensors. Tensors that are not floating-point are not changed.
    """
    return [tf.cast(v, dtype) if v.dtype.is_floating else v for v in values]


def is_absent(argument: tf.Tensor) -> bool:
    """Whether an optional argument of an op is not given.

    Args:
      argument: the tensor that the op gets.

    Returns:
      Whether its static shape is [0].
    """
    return argument.shape.rank == 1 and argument.shape[0] == 0


def valid_steps(sequence: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
    """The steps that lie within the sequence lengths.

    Args:
      sequence: [T, B, ...].
      lengths: integers, [B] or a scalar.

    Returns:
      bool [T, B], or [T, 1] for a scalar.
    """
    steps = tf.range(tf.shape(sequence, lengths.dtype)[0])
    return steps[:, tf.newaxis] < lengths


def zero_where_not(valid: tf.Tensor, sequence: tf.Tensor) -> tf.Tensor:
    """Clears the steps that are not valid; their elements may be NaN.

    Args:
      valid: bool [T, B] or [T, 1].
      sequence: [T, B, K].

    Returns:
      [T, B, K], zero at steps that are not valid.
    """
    # TensorFlow Lite converts expand_dims whatever sizes are unknown, but not valid[:, :, newaxis].
    return tf.where(tf.expand_dims(valid, 2), sequence, 0)


def straight_through_clip(cs: tf.Tensor, cell_clip: float) -> tf.Tensor:
    """Clips the cell state. The gradient is the identity.

    Args:
      cs: the cell state, of any shape.
      cell_clip: the bound; no bound unless positive.

    Returns:
      cs within [-cell_clip, cell_clip].
    """
    if cell_clip <= 0:
        return cs
    # TensorFlow's forward mode ignores the custom gradient of an eager call.
    clip = _traced_clip if tf.executing_eagerly() else _clip
    return clip(cs, cell_clip)


def masked_clip(h: tf.Tensor, proj_clip: float) -> Any:
    """Clips the projected h. The gradient is 0 where it exceeds the bound, else the identity.

    Args:
      h: the projected h, of any shape.
      proj_clip: the bound; no bound unless positive.

    Returns:
      h within [-proj_clip, proj_clip].
    """
    if proj_clip <= 0:
        return h
    bound = float(np.float32(proj_clip))  # as the op has it
    return tf.clip_by_value(h, -bound, bound)


def _clip(cs: tf.Tensor, cell_clip: float) -> tf.Tensor:
    return tf.grad_pass_through(lambda v: tf.clip_by_value(v, -cell_clip, cell_clip))(cs)


_traced_clip = tf.function(_clip, autograph=False)


def gradients(
    function: Callable[..., list[tf.Tensor]],
    sources: list[tf.Tensor],
    output_grads: Callable[..., list[tf.Tensor]],
) -> list[tf.Tensor]:
    """Vector-Jacobian product of a function of plain TensorFlow ops; differentiable.

    Args:
      function: takes the sources one by one; returns a list of outputs.
      sources: the floating-point tensors at which to differentiate.
      output_grads: takes the outputs; returns their gradients.

    Returns:
      The gradients of the sources; zeros for those on which no output depends.
    """
    zero = tf.UnconnectedGradients.ZERO
    # In a graph tf.gradients gives a loop further outputs. A tape that records does not know them.
    if tf.executing_eagerly() or _tf_private.may_record():
        with tf.GradientTape() as tape:
            tape.watch(sources)
            outputs = function(*sources)
        return tape.gradient(outputs, sources, output_grads(outputs), unconnected_gradients=zero)
    # A loop that two tapes watch becomes a function with lists of tensors as outputs, whose
    # gradients tf.vectorized_map and tape.jacobian cannot vectorize.
    sources = [tf.identity(source) for source in sources]  # in this graph, not captured by it
    with in_derivatives():
        outputs = function(*sources)
    return tf.gradients(outputs, sources, output_grads(outputs), unconnected_gradients=zero)


@tf.custom_gradient
def with_unused(value: tf.Tensor, *arguments: tf.Tensor) -> Any:
    """Makes the gradient zero instead of None for arguments on which a value does not depend.

    Args:
      value: a tensor.
      *arguments: the tensors on which it does not depend.

    Returns:
      value, and the function of its gradient that ``tf.custom_gradient`` takes.
    """
    return tf.identity(value), lambda value_grad: [value_grad, *map(tf.zeros_like, arguments)]


_NUMBERS = itertools.count()


def copy_of_reserve(reserve: tf.Tensor) -> tf.Tensor:
    """A copy of reserve_space for one backward pass, which writes to it.

    TensorFlow computes no identity and no slice of the whole, and merges equal copies in a graph.

    Args:
      reserve: T [n].

    Returns:
      T [n], in other memory.
    """
    return tf.pad(reserve, [[0, 1]], constant_values=next(_NUMBERS) % 1024)[:-1]
