"""The sequence semantics of keras.layers.LSTM, forward and backward.

Batch-major, gates in the order i, f, c, o. For t over time (backwards if go_backwards), with

    z_g = (x_t∘input_dropout_g)·kernel_g + (h∘recurrent_dropout_g)·recurrent_kernel_g + bias_g

and the activations of the block cell (`block_cell.activate`; peephole rows i, f, o). A step whose
mask is False leaves h and c as they are; its output repeats the one before (zero at the start),
or is zero with zero_output_for_mask. The outputs stand in the order in which they are made.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .block_cell import Array, Outputs, activate, activate_backward, zero_upstream


class Arguments(NamedTuple):
    """The differentiable arguments, or their gradients."""

    x: Array  # [B, T, I]
    h0: Array  # [B, H]
    c0: Array  # [B, H]
    kernel: Array  # [I, 4H]
    recurrent_kernel: Array  # [H, 4H]
    bias: Array  # [4H]
    peephole: Array  # [3, H], zero for none


class Results(NamedTuple):
    """What the layer returns, or the gradients of that. Without return_sequences a layer returns
    outputs[:, -1]."""

    outputs: Array  # [B, T, H]
    h: Array  # [B, H]
    c: Array  # [B, H]


@dataclass(frozen=True)
class Options:
    mask: Array | None = None  # [B, T] bool
    go_backwards: bool = False
    zero_output_for_mask: bool = False
    cell_clip: float | None = None
    input_dropout: Array | float = 1.0  # factors, [B, I], or [4, B, I]: one mask per gate
    recurrent_dropout: Array | float = 1.0  # factors, [B, H], or [4, B, H]

    def steps(self, arguments: Arguments) -> list[tuple[int, Array]]:
        """(t, mask[:, t, None]) in the order of the calculation."""
        batch, time, _ = arguments.x.shape
        mask = np.ones((batch, time), bool) if self.mask is None else self.mask
        steps = [(t, mask[:, t, None]) for t in range(time)]
        return steps[::-1] if self.go_backwards else steps

    def factors(self, x: Array, h: Array) -> tuple[Array, Array]:
        """The dropout factors as [4, B, I] and [4, B, H]."""
        return (
            np.broadcast_to(self.input_dropout, (4, *x.shape)),
            np.broadcast_to(self.recurrent_dropout, (4, *h.shape)),
        )


def _step(a: Arguments, options: Options, t: int, h: Array, c: Array) -> Outputs:
    x = a.x[:, t]
    input_factor, recurrent_factor = options.factors(x, h)
    columns = zip(
        "ifco",
        input_factor,
        recurrent_factor,
        np.split(a.kernel, 4, axis=1),
        np.split(a.recurrent_kernel, 4, axis=1),
        np.split(a.bias, 4),
        strict=True,
    )
    z = {
        g: (x * x_factor) @ k + (h * h_factor) @ r + b for g, x_factor, h_factor, k, r, b in columns
    }
    return activate(z, c, tuple(a.peephole), options.cell_clip or 0.0)


def keras_lstm(arguments: Arguments, options: Options | None = None) -> Results:
    options = options or Options()
    h, c = arguments.h0, arguments.c0
    output, outputs = np.zeros_like(h), []
    for t, valid in options.steps(arguments):
        step = _step(arguments, options, t, h, c)
        masked = np.zeros_like(h) if options.zero_output_for_mask else output
        output = np.where(valid, step.h, masked)
        h, c = np.where(valid, step.h, h), np.where(valid, step.cs, c)
        outputs.append(output)
    return Results(np.stack(outputs, axis=1), h, c)


def keras_lstm_backward(
    arguments: Arguments, upstream: Results, options: Options | None = None
) -> Arguments:
    """The gradients of all arguments; the clip counts as the identity (straight-through)."""
    options = options or Options()
    steps = options.steps(arguments)
    states = [(arguments.h0, arguments.c0)]
    saved: list[Outputs] = []
    for t, valid in steps:
        h, c = states[-1]
        saved.append(_step(arguments, options, t, h, c))
        states.append((np.where(valid, saved[-1].h, h), np.where(valid, saved[-1].cs, c)))

    total = Arguments(*(np.zeros(a.shape, np.result_type(*arguments)) for a in arguments))
    output_grad = np.zeros_like(
        upstream.h
    )  # of the repeated output, carried back through masked steps
    h_grad, c_grad = upstream.h, upstream.c
    for k in reversed(range(len(steps))):
        (t, valid), (h, c), x = steps[k], states[k], arguments.x[:, steps[k][0]]
        output_grad = output_grad + upstream.outputs[:, k]
        z_grad, c_step_grad = activate_backward(
            saved[k],
            zero_upstream(
                saved[k],
                h=np.where(valid, h_grad + output_grad, 0),
                cs=np.where(valid, c_grad, 0),
            ),
            c,
            tuple(arguments.peephole),
        )
        gates = np.stack([z_grad[g] for g in "ifco"])  # [4, B, H]
        input_factor, recurrent_factor = options.factors(x, h)
        kernel = np.stack(np.split(arguments.kernel, 4, axis=1))
        recurrent = np.stack(np.split(arguments.recurrent_kernel, 4, axis=1))
        total.x[:, t] = (gates @ kernel.swapaxes(1, 2) * input_factor).sum(0)
        h_step_grad = (gates @ recurrent.swapaxes(1, 2) * recurrent_factor).sum(0)
        total.kernel[...] += np.concatenate(
            [(x * m).T @ g for m, g in zip(input_factor, gates, strict=True)], axis=1
        )
        total.recurrent_kernel[...] += np.concatenate(
            [(h * m).T @ g for m, g in zip(recurrent_factor, gates, strict=True)], axis=1
        )
        total.bias[...] += np.concatenate(gates.sum(1))
        total.peephole[...] += np.stack(
            [(z_grad["i"] * c).sum(0), (z_grad["f"] * c).sum(0), (z_grad["o"] * saved[k].cs).sum(0)]
        )
        h_grad, c_grad = (
            h_step_grad + np.where(valid, 0, h_grad),
            c_step_grad + np.where(valid, 0, c_grad),
        )
        output_grad = np.where(valid | options.zero_output_for_mask, 0, output_grad)
    return total._replace(h0=h_grad, c0=c_grad)
