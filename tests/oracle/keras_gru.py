"""The sequence semantics of keras.layers.GRU with reset_after, forward and backward.

Batch-major, gates in the order z, r, n (Keras calls the candidate n "h"). For t over time
(backwards if go_backwards), with a_g of the inputs and b_g of the state,

    a_g = (x_t∘input_dropout_g)·kernel_g + bias[0]_g
    b_g = (h∘recurrent_dropout_g)·recurrent_kernel_g + bias[1]_g
    z = σ(a_z + b_z)      r = σ(a_r + b_r)      n = tanh(a_n + r∘b_n)
    h = z∘h + (1-z)∘n

where the last line sees the undropped h. Masks and options mean what they do in `keras_lstm`; there
is no cell state that cell_clip could bound.
"""

from typing import NamedTuple

import numpy as np

from .block_cell import Array, sigmoid
from .keras_lstm import Options

GATES = 3


class Arguments(NamedTuple):
    """The differentiable arguments, or their gradients."""

    x: Array  # [B, T, I]
    h0: Array  # [B, H]
    kernel: Array  # [I, 3H]
    recurrent_kernel: Array  # [H, 3H]
    bias: Array  # [2, 3H]: of the inputs, of the state


class Results(NamedTuple):
    """What the layer returns, or the gradients of that. Without return_sequences a layer returns
    outputs[:, -1]."""

    outputs: Array  # [B, T, H]
    h: Array  # [B, H]


class Step(NamedTuple):
    """What a step computes, [B, H] each."""

    z: Array
    r: Array
    n: Array
    b_n: Array
    h: Array


def _factors(options: Options, x: Array, h: Array) -> tuple[Array, Array]:
    """The dropout factors as [3, B, I] and [3, B, H]."""
    return (
        np.broadcast_to(options.input_dropout, (GATES, *x.shape)),
        np.broadcast_to(options.recurrent_dropout, (GATES, *h.shape)),
    )


def _by_gate(matrix: Array) -> Array:
    """The columns [..., 3H] as [3, ..., H]."""
    return np.stack(np.split(matrix, GATES, axis=-1))


def _step(a: Arguments, options: Options, t: int, h: Array) -> Step:
    x = a.x[:, t]
    input_factor, recurrent_factor = _factors(options, x, h)
    x_bias, h_bias = (_by_gate(bias)[:, np.newaxis] for bias in a.bias)
    x_terms = x * input_factor @ _by_gate(a.kernel) + x_bias
    h_terms = h * recurrent_factor @ _by_gate(a.recurrent_kernel) + h_bias
    z, r = sigmoid(x_terms[:2] + h_terms[:2])
    n = np.tanh(x_terms[2] + r * h_terms[2])
    return Step(z, r, n, h_terms[2], z * h + (1 - z) * n)


def _step_backward(s: Step, h: Array, h_grad: Array) -> tuple[Array, Array, Array]:
    """The gradients of a and b, [3, B, H] each, and of the h that the last line sees."""
    n_grad = h_grad * (1 - s.z) * (1 - s.n * s.n)
    z_grad = h_grad * (h - s.n) * s.z * (1 - s.z)
    r_grad = n_grad * s.b_n * s.r * (1 - s.r)
    return (
        np.stack([z_grad, r_grad, n_grad]),
        np.stack([z_grad, r_grad, n_grad * s.r]),
        h_grad * s.z,
    )


def keras_gru(arguments: Arguments, options: Options | None = None) -> Results:
    options = options or Options()
    h = arguments.h0
    output, outputs = np.zeros_like(h), []
    for t, valid in options.steps(arguments):
        step = _step(arguments, options, t, h)
        output = np.where(valid, step.h, 0 if options.zero_output_for_mask else output)
        h = np.where(valid, step.h, h)
        outputs.append(output)
    return Results(np.stack(outputs, axis=1), h)


def keras_gru_backward(
    arguments: Arguments, upstream: Results, options: Options | None = None
) -> Arguments:
    """The gradients of all arguments."""
    options = options or Options()
    steps = options.steps(arguments)
    states, saved = [arguments.h0], []
    for t, valid in steps:
        saved.append(_step(arguments, options, t, states[-1]))
        states.append(np.where(valid, saved[-1].h, states[-1]))

    total = Arguments(*(np.zeros(a.shape, np.result_type(*arguments)) for a in arguments))
    kernel, recurrent_kernel = _by_gate(arguments.kernel), _by_gate(arguments.recurrent_kernel)
    output_grad = np.zeros_like(
        upstream.h
    )  # of the repeated output, carried back through masked steps
    h_grad = upstream.h
    for k in reversed(range(len(steps))):
        (t, valid), h, x = steps[k], states[k], arguments.x[:, steps[k][0]]
        input_factor, recurrent_factor = _factors(options, x, h)
        output_grad = output_grad + upstream.outputs[:, k]
        a_grad, b_grad, h_step_grad = _step_backward(
            saved[k], h, np.where(valid, h_grad + output_grad, 0)
        )
        total.x[:, t] = (a_grad @ kernel.swapaxes(1, 2) * input_factor).sum(0)
        h_step_grad = h_step_grad + (
            b_grad @ recurrent_kernel.swapaxes(1, 2) * recurrent_factor
        ).sum(0)
        for weight, value, gates in (
            (total.kernel, x * input_factor, a_grad),
            (total.recurrent_kernel, h * recurrent_factor, b_grad),
        ):
            weight[...] += np.concatenate(value.swapaxes(1, 2) @ gates, axis=1)
        total.bias[...] += np.stack([np.concatenate(gates.sum(1)) for gates in (a_grad, b_grad)])
        h_grad = h_step_grad + np.where(valid, 0, h_grad)
        output_grad = np.where(valid | options.zero_output_for_mask, 0, output_grad)
    return total._replace(h0=h_grad)
