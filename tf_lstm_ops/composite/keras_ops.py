"""The composites of the ops behind tf_lstm_ops.keras: of a layer, of two directions, of gradients.

B batch, T time, P size of h.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tf_lstm_ops import op_definitions
from tf_lstm_ops.composite import keras
from tf_lstm_ops.composite.common import Composite, gradients, is_absent

# The names of the inputs and outputs of the layer that reads backwards begin with it.
BACKWARD = "backward_"
_X = ("x", f"{BACKWARD}x")


def bidirectional_name(op: str) -> str:
    """The op of two layers, one for each direction.

    Args:
      op: the op of one layer, a key of `keras.LAYERS`.

    Returns:
      The name of the op, without its namespace.
    """
    return f"KerasBidirectional{op.removeprefix('Keras')}"


def _bidirectional(layer: Callable[..., list[tf.Tensor]]) -> Callable[..., list[tf.Tensor]]:
    """The function of an op of two layers, from that of one layer."""

    def function(
        *, x: tf.Tensor, backward_x: tf.Tensor, return_sequences: bool, **arguments: Any
    ) -> list[tf.Tensor]:
        first = {n: v for n, v in arguments.items() if not n.startswith(BACKWARD)}
        own = {n.removeprefix(BACKWARD): v for n, v in arguments.items() if n.startswith(BACKWARD)}
        first["return_sequences"] = return_sequences
        second = {**first, **own}
        output, *states = layer(x=x, go_backwards=False, **first)
        x = x if is_absent(backward_x) else backward_x
        backward_output, *backward_states = layer(x=x, go_backwards=True, **second)
        if return_sequences:
            backward_output = tf.reverse(backward_output, [1])
        return [tf.concat([output, backward_output], -1), *states, *backward_states]

    return function


# The function of each op.
LAYERS: dict[str, Callable[..., list[tf.Tensor]]] = {
    **keras.LAYERS,
    **{bidirectional_name(op): _bidirectional(layer) for op, layer in keras.LAYERS.items()},
}


def _with_reserve(function: Callable[..., list[tf.Tensor]]) -> Composite:
    """The composite of a layer's op. The reserve is empty; only the gradient op would read it."""

    def composite(*, training: bool, **arguments: Any) -> list[tf.Tensor]:
        results = function(**arguments)
        return [*results, tf.zeros([0], results[0].dtype)]

    return composite


def _layer_grad(op: str) -> Composite:
    """The composite of the gradient op of a layer's op. The forward pass is computed again.

    Of the gradient op's inputs it does not read output and reserve, and without needs_x_grad the
    gradients of x are zero.
    """

    def composite(*, needs_x_grad: bool, **arguments: Any) -> list[tf.Tensor]:
        inputs = {name: arguments.pop(name) for name in op_definitions.inputs(op)}
        _, _, *grads = list(op_definitions.inputs(f"{op}Grad"))[len(inputs) :]
        own = [n for n in op_definitions.attributes(f"{op}Grad") if n != "needs_x_grad"]
        attributes = {name: arguments[name] for name in own}
        names = [name.removesuffix("_grad") for name in op_definitions.outputs(f"{op}Grad")]

        def forward(*sources: Any) -> list[tf.Tensor]:
            return LAYERS[op](**{**inputs, **dict(zip(names, sources, strict=True))}, **attributes)

        output_grads = [arguments[name] for name in grads]
        found = gradients(forward, [inputs[name] for name in names], lambda _: output_grads)
        return [
            grad if needs_x_grad or name not in _X else tf.zeros_like(grad)
            for name, grad in zip(names, found, strict=True)
        ]

    return composite


COMPOSITES: dict[str, Composite] = {
    **{op: _with_reserve(layer) for op, layer in LAYERS.items()},
    **{f"{op}Grad": _layer_grad(op) for op in LAYERS},
}
