"""The sequence semantics of keras.layers.GRU, forward and backward.

Batch-major, gates in the order z, r, n (Keras calls the candidate n "h"). For t over time
(backwards if go_backwards), with a_g of the inputs and b_g of the state,

    a_g = (x_t∘input_dropout_g)·kernel_g + bias[0]_g
    b_g = (h∘recurrent_dropout_g)·recurrent_kernel_g + bias[1]_g
    z = σ(a_z + b_z)      r = σ(a_r + b_r)      n = tanh(a_n + r∘b_n)
    h = z∘h + (1-z)∘n

where the last line sees the undropped h. With reset_after=False, which a bias of shape [3H] means,

    b_g = (h∘recurrent_dropout_g)·recurrent_kernel_g, but b_n = (r∘h∘recurrent_dropout_n)·…_n
    n = tanh(a_n + b_n)

Masks and options mean what they do in `keras_lstm`; there
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
    bias: Array  # [2, 3H]: of the inputs, of the state; [3H] with reset_after=False

    @property
    def reset_after(self) -> bool:
        return self.bias.ndim == 2


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
    factors: Array  # [3, B, H], which the recurrent kernels multiply
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
    biases = a.bias if a.reset_after else (a.bias, np.zeros_like(a.bias))
    x_bias, h_bias = (_by_gate(bias)[:, np.newaxis] for bias in biases)
    x_terms = x * input_factor @ _by_gate(a.kernel) + x_bias
    kernels, factors = _by_gate(a.recurrent_kernel), h * recurrent_factor
    z, r = sigmoid(x_terms[:2] + factors[:2] @ kernels[:2] + h_bias[:2])
    if not a.reset_after:
        factors = np.stack([*factors[:2], r * factors[2]])
    b_n = factors[2] @ kernels[2] + h_bias[2]
    n = np.tanh(x_terms[2] + (r * b_n if a.reset_after else b_n))
    return Step(z, r, n, b_n, factors, z * h + (1 - z) * n)


def _step_backward(
    a: Arguments, s: Step, h: Array, recurrent_factor: Array, h_grad: Array
) -> tuple[Array, Array, Array]:
    """The gradients of a and b, [3, B, H] each, and of h."""
    kernels = _by_gate(a.recurrent_kernel).swapaxes(1, 2)
    n_grad = h_grad * (1 - s.z) * (1 - s.n * s.n)
    z_grad = h_grad * (h - s.n) * s.z * (1 - s.z)
    b_n_grad = n_grad * s.r if a.reset_after else n_grad
    n_factor_grad = b_n_grad @ kernels[2]
    if a.reset_after:
        r_grad = n_grad * s.b_n * s.r * (1 - s.r)
    else:
        r_grad = n_factor_grad * h * recurrent_factor[2] * s.r * (1 - s.r)
        n_factor_grad = n_factor_grad * s.r
    b_grad = np.stack([z_grad, r_grad, b_n_grad])
    factor_grads = np.stack([*(b_grad[:2] @ kernels[:2]), n_factor_grad])
    h_before_grad = h_grad * s.z + (factor_grads * recurrent_factor).sum(0)
    return np.stack([z_grad, r_grad, n_grad]), b_grad, h_before_grad


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
    kernel = _by_gate(arguments.kernel)
    output_grad = np.zeros_like(
        upstream.h
    )  # of the repeated output, carried back through masked steps
    h_grad = upstream.h
    for k in reversed(range(len(steps))):
        (t, valid), h, x = steps[k], states[k], arguments.x[:, steps[k][0]]
        input_factor, recurrent_factor = _factors(options, x, h)
        output_grad = output_grad + upstream.outputs[:, k]
        step_grad = np.where(valid, h_grad + output_grad, 0)
        a_grad, b_grad, h_before_grad = _step_backward(
            arguments, saved[k], h, recurrent_factor, step_grad
        )
        total.x[:, t] = (a_grad @ kernel.swapaxes(1, 2) * input_factor).sum(0)
        for weight, value, gates in (
            (total.kernel, x * input_factor, a_grad),
            (total.recurrent_kernel, saved[k].factors, b_grad),
        ):
            weight[...] += np.concatenate(value.swapaxes(1, 2) @ gates, axis=1)
        bias_grads = [np.concatenate(gates.sum(1)) for gates in (a_grad, b_grad)]
        total.bias[...] += np.stack(bias_grads) if arguments.reset_after else bias_grads[0]
        h_grad = h_before_grad + np.where(valid, 0, h_grad)
        output_grad = np.where(valid | options.zero_output_for_mask, 0, output_grad)
    return total._replace(h0=h_grad)
