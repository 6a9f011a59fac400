"""What the gradients share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

# A function that tf.RegisterGradient takes.
Gradient = Callable[..., Any]


def attributes(op: Any, names: Sequence[str]) -> dict[str, Any]:
    """Attributes of an op, with text as str."""
    values = {name: op.get_attr(name) for name in names}
    return {n: v.decode() if isinstance(v, bytes) else v for n, v in values.items()}


def filled(grads: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Upstream gradients with zeros where an output has none."""
    return [tf.zeros_like(y) if g is None else g for g, y in zip(grads, outputs, strict=True)]


def vector_jacobian(
    function: Callable[..., Any], inputs: Sequence[Any], grads: Sequence[Any]
) -> list[Any]:
    """Gradients of plain TensorFlow `function` by all inputs; None by those that are no floats."""
    watched = [v for v in inputs if v.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        outputs = function(*inputs)
    found = iter(tape.gradient(outputs, watched, filled(grads, outputs)))
    return [next(found) if v.dtype.is_floating else None for v in inputs]
