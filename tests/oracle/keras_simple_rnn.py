"""The sequence semantics of keras.layers.SimpleRNN, forward, and with tanh backward.

Batch-major. For t over time (backwards if go_backwards),

    h = tanh((x_t∘input_dropout)·kernel + bias + (h∘recurrent_dropout)·recurrent_kernel)

Masks and options mean what they do in `keras_lstm`; there is no cell state that cell_clip could
bound.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .block_cell import Array
from .keras_lstm import Options


class Arguments(NamedTuple):
    """The differentiable arguments, or their gradients."""

    x: Array  # [B, T, I]
    h0: Array  # [B, H]
    kernel: Array  # [I, H]
    recurrent_kernel: Array  # [H, H]
    bias: Array  # [H]


class Results(NamedTuple):
    """What the layer returns, or the gradients of that. Without return_sequences a layer returns
    outputs[:, -1]."""

    outputs: Array  # [B, T, H]
    h: Array  # [B, H]


def _factors(options: Options, x: Array, h: Array) -> tuple[Array, Array]:
    """The dropout factors as [B, I] and [B, H]; an op has an axis of one gate in front."""
    return (
        np.broadcast_to(options.input_dropout, (1, *x.shape))[0],
        np.broadcast_to(options.recurrent_dropout, (1, *h.shape))[0],
    )


def _step(
    a: Arguments, options: Options, t: int, h: Array, function: Callable[[Array], Array] = np.tanh
) -> Array:
    input_factor, recurrent_factor = _factors(options, a.x[:, t], h)
    z = a.x[:, t] * input_factor @ a.kernel + a.bias
    return function(z + h * recurrent_factor @ a.recurrent_kernel)


def keras_simple_rnn(
    arguments: Arguments,
    options: Options | None = None,
    function: Callable[[Array], Array] = np.tanh,
) -> Results:
    options = options or Options()
    h = arguments.h0
    output, outputs = np.zeros_like(h), []
    for t, valid in options.steps(arguments):
        new = _step(arguments, options, t, h, function)
        output = np.where(valid, new, 0 if options.zero_output_for_mask else output)
        h = np.where(valid, new, h)
        outputs.append(output)
    return Results(np.stack(outputs, axis=1), h)


def keras_simple_rnn_backward(
    arguments: Arguments, upstream: Results, options: Options | None = None
) -> Arguments:
    """The gradients of all arguments."""
    options = options or Options()
    steps = options.steps(arguments)
    states, computed = [arguments.h0], []
    for t, valid in steps:
        computed.append(_step(arguments, options, t, states[-1]))
        states.append(np.where(valid, computed[-1], states[-1]))

    total = Arguments(*(np.zeros(a.shape, np.result_type(*arguments)) for a in arguments))
    # Of the repeated output, carried back through masked steps.
    output_grad = np.zeros_like(upstream.h)
    h_grad = upstream.h
    for k in reversed(range(len(steps))):
        (t, valid), h, x = steps[k], states[k], arguments.x[:, steps[k][0]]
        input_factor, recurrent_factor = _factors(options, x, h)
        output_grad = output_grad + upstream.outputs[:, k]
        z_grad = np.where(valid, h_grad + output_grad, 0) * (1 - computed[k] ** 2)
        total.x[:, t] = z_grad @ arguments.kernel.T * input_factor
        total.kernel[...] += (x * input_factor).T @ z_grad
        total.recurrent_kernel[...] += (h * recurrent_factor).T @ z_grad
        total.bias[...] += z_grad.sum(0)
        h_grad = z_grad @ arguments.recurrent_kernel.T * recurrent_factor + np.where(
            valid, 0, h_grad
        )
        output_grad = np.where(valid | options.zero_output_for_mask, 0, output_grad)
    return total._replace(h0=h_grad)
