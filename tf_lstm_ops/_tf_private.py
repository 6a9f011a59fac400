"""Every private name of TensorFlow that the package uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tensorflow.python.framework import ops
from tensorflow.python.framework.registry import Registry


def offer_gradients(gradients: Mapping[str, Callable[..., Any]]) -> None:
    """Offers gradients of ops to TensorFlow, for ops of which no other gradient is registered.

    ``tf.RegisterGradient`` accepts one gradient of an op and refuses all others. An offer is not a
    registration: other code can register a gradient of the op, before this call or after it, and
    TensorFlow then uses that one. A second call replaces all offers.

    Args:
      gradients: functions for ``tf.RegisterGradient``, by the op's name in a graph.
    """

    class Offering(Registry):
        __slots__ = ()

        def lookup(self, name: str) -> Any:
            try:
                return super().lookup(name)
            except LookupError:
                if name not in gradients:
                    raise
                return gradients[name]

    ops.gradient_registry.__class__ = Offering
