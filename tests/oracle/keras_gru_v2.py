"""The GRU of keras.GRU with any activations, forward, in NumPy.

With g the activation and a the recurrent activation, gates in the order z, r, n:

    z = a(x·kernel_z + h·recurrent_z + b_z)    r likewise
    n = g(x·kernel_n + bias_n + r∘(h·recurrent_n + recurrent_bias_n)), or with reset_after=False
    n = g(x·kernel_n + bias_n + (r∘h)·recurrent_n)
    h = z∘h + (1-z)∘n

Source: the documentation of keras.layers.GRU. Masks as in `keras_lstm`. All functions take complex
numbers with a tiny imaginary part, for `derivatives.complex_step`.
"""

from typing import NamedTuple

import numpy as np

from .keras_lstm_v2 import ACTIVATIONS, Array


class Arguments(NamedTuple):
    x: Array  # [B, T, I]
    h0: Array  # [B, H]
    kernel: Array  # [I, 3H]
    recurrent_kernel: Array  # [H, 3H]
    bias: Array  # [2, 3H], [3H] with reset_after=False


class Results(NamedTuple):
    outputs: Array  # [B, T, H]
    h: Array  # [B, H]


def keras_gru_v2(
    arguments: Arguments,
    *,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
    mask: Array | None = None,
    go_backwards: bool = False,
) -> Results:
    """The outputs of all steps, in the order in which they are made, and the final state."""
    of_candidate, of_gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]
    x, h, kernel, recurrent, bias = arguments
    reset_after = bias.ndim == 2
    input_bias, recurrent_bias = bias if reset_after else (bias, np.zeros_like(bias))
    kernels = np.split(recurrent, 3, axis=1)
    *_, candidate_bias = np.split(recurrent_bias, 3)
    steps = range(x.shape[1])[:: -1 if go_backwards else 1]
    output, outputs = np.zeros_like(h), []
    for t in steps:
        xz, xr, xn = np.split(x[:, t] @ kernel + input_bias, 3, axis=1)
        hz, hr, _ = np.split(h @ recurrent + recurrent_bias, 3, axis=1)
        z, r = of_gate(xz + hz), of_gate(xr + hr)
        hn = r * (h @ kernels[2] + candidate_bias) if reset_after else (r * h) @ kernels[2]
        new_h = z * h + (1 - z) * of_candidate(xn + hn)
        valid = np.ones((len(x), 1), bool) if mask is None else mask[:, t, None]
        output = np.where(valid, new_h, output)
        h = np.where(valid, new_h, h)
        outputs.append(output)
    return Results(np.stack(outputs, axis=1), h)
