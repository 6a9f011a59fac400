"""Functions that several gradients use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tf_lstm_ops import _tf_private, op_definitions
from tf_lstm_ops.composite.common import Composite, gradients

# A function for tf.RegisterGradient: from the op and the gradients of its outputs it computes the
# gradients of its inputs. A gradient that does not exist is None.
Gradient = Callable[..., Any]


def attributes(op: tf.Operation, names: Sequence[str]) -> dict[str, Any]:
    """Attributes of an op.

    Args:
      op: the op, as a gradient function gets it.
      names: the attributes to read.

    Returns:
      Their values by name; text as str.
    """
    given = _tf_private.eager_attributes(op)
    values = {name: op.get_attr(name) if given is None else given[name] for name in names}
    return {n: v.decode() if isinstance(v, bytes) else v for n, v in values.items()}


def filled(grads: Sequence[Any], outputs: Sequence[Any]) -> list[tf.Tensor]:
    """The gradients of an op's outputs, with zeros instead of None.

    Args:
      grads: the gradients of the outputs; None for an output that does not affect the result.
      outputs: the outputs.

    Returns:
      The gradients, zeros for None.
    """
    return [tf.zeros_like(y) if g is None else g for g, y in zip(grads, outputs, strict=True)]


def second(op: str, composite: Composite, *constant: str) -> Gradient:
    """The gradient of a gradient op: the gradient of its composite.

    Args:
      op: the name of the gradient op, without its namespace.
      composite: its composite.
      *constant: inputs without a gradient, such as those that are functions of the other inputs:
        the whole derivative goes through the composite of the forward pass.

    Returns:
      The gradient.
    """

    def gradient(node: Any, *grads: Any) -> Any:
        settings = attributes(node, op_definitions.attributes(op))
        names = list(op_definitions.inputs(op))

        def composed(*values: Any) -> list[tf.Tensor]:
            return composite(**dict(zip(names, values, strict=True)), **settings)

        return vector_jacobian(composed, node.inputs, grads, [names.index(n) for n in constant])

    return gradient


def vector_jacobian(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    grads: Sequence[Any],
    constant: Sequence[int] = (),
) -> list[tf.Tensor]:
    """Vector-Jacobian product of a function of plain TensorFlow ops.

    Args:
      function: takes the inputs one by one; returns a list of outputs.
      inputs: the values at which to differentiate.
      grads: the gradients of the outputs; None for zero.
      constant: the positions of inputs that need no gradient.

    Returns:
      The gradients of all inputs; None for those that are constant or not floating-point.
    """
    varies = [v.dtype.is_floating and k not in constant for k, v in enumerate(inputs)]

    def of_varying(*values: Any) -> list[tf.Tensor]:
        given = iter(values)
        return function(*(next(given) if f else v for f, v in zip(varies, inputs, strict=True)))

    watched = [v for v, is_watched in zip(inputs, varies, strict=True) if is_watched]
    found = iter(gradients(of_varying, watched, lambda outputs: filled(grads, outputs)))
    return [next(found) if f else None for f in varies]
