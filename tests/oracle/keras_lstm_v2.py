"""The LSTM of keras.LSTM with a projection and any activations, forward, in NumPy.

With g the activation and a the recurrent activation, gates in the order i, f, c, o:

    z = x·kernel + h·recurrent_kernel + bias
    i = a(z_i + p_i∘c)    f = a(z_f + p_f∘c)    c = clip(f∘c + i∘g(z_c))    o = a(z_o + p_o∘c)
    h = clip((o∘g(c))·projection)

Source: H. Sak, A. Senior, F. Beaufays, "Long short-term memory recurrent neural network
architectures for large scale acoustic modeling" (2014), without the non-recurrent projection; the
activations as in Keras 3's documentation. Masks as in `keras_lstm`. All functions take complex
numbers with a tiny imaginary part, for `derivatives.complex_step`. The clip of c is the identity
for derivatives, as in TensorFlow's LSTMBlockCell; that of h is tf.clip_by_value: its derivative is
0 outside the bounds and 1 at and within them.
"""

import math
from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Arguments(NamedTuple):
    x: Array  # [B, T, I]
    h0: Array  # [B, P]
    c0: Array  # [B, H]
    kernel: Array  # [I, 4H]
    recurrent_kernel: Array  # [P, 4H]
    bias: Array  # [4H]
    peephole: Array  # [3, H], zero for none
    projection: Array  # [H, P], the identity for none


class Results(NamedTuple):
    outputs: Array  # [B, T, P]
    h: Array  # [B, P]
    c: Array  # [B, H]


def _pieces(z: Array, *pieces: Array) -> Array:
    """Three pieces of a function: below -c, within, above c, c the first argument."""
    bound, low, middle, high = pieces
    return np.where(z.real < -bound, low, np.where(z.real > bound, high, middle))


def _erf(z: Array) -> Array:
    """erf(a + ib) = erf(a) + ib erf'(a) for tiny b."""
    slope = 2 / math.sqrt(math.pi) * np.exp(-(z.real**2))
    value = np.vectorize(math.erf, otypes=[float])(z.real)
    return value + 1j * z.imag * slope if np.iscomplexobj(z) else value


ACTIVATIONS = {
    "linear": lambda z: z,
    "relu": lambda z: np.where(z.real > 0, z, 0),
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "hard_sigmoid": lambda z: _pieces(z, 3.0, 0.0, z / 6 + 0.5, 1.0),
    "hard_tanh": lambda z: _pieces(z, 1.0, -1.0, z, 1.0),
    "softsign": lambda z: z / (1 + np.where(z.real < 0, -z, z)),
    "elu": lambda z: np.where(z.real > 0, z, np.exp(z) - 1),
    "leaky_relu": lambda z: np.where(z.real > 0, z, 0.2 * z),
    "silu": lambda z: z / (1 + np.exp(-z)),
    "gelu": lambda z: z * (1 + _erf(z / math.sqrt(2))) / 2,
}


def keras_lstm_v2(
    arguments: Arguments,
    *,
    activation: str = "tanh",
    recurrent_activation: str = "sigmoid",
    cell_clip: float | None = None,
    proj_clip: float | None = None,
    mask: Array | None = None,
    go_backwards: bool = False,
) -> Results:
    """The outputs of all steps, in the order in which they are made, and the final states."""
    of_state, of_gate = ACTIVATIONS[activation], ACTIVATIONS[recurrent_activation]
    x, h, c, kernel, recurrent, bias, peephole, projection = arguments
    steps = range(x.shape[1])[:: -1 if go_backwards else 1]
    output, outputs = np.zeros_like(h), []
    for t in steps:
        zi, zf, zc, zo = np.split(x[:, t] @ kernel + h @ recurrent + bias, 4, axis=1)
        gates = of_gate(zi + peephole[0] * c), of_gate(zf + peephole[1] * c)
        new_c = gates[1] * c + gates[0] * of_state(zc)
        if cell_clip:
            new_c = new_c - new_c.real + np.clip(new_c.real, -cell_clip, cell_clip)
        new_h = (of_gate(zo + peephole[2] * new_c) * of_state(new_c)) @ projection
        if proj_clip:
            new_h = _pieces(new_h, proj_clip, -proj_clip, new_h, proj_clip)
        valid = np.ones((len(x), 1), bool) if mask is None else mask[:, t, None]
        output = np.where(valid, new_h, output)
        h, c = np.where(valid, new_h, h), np.where(valid, new_c, c)
        outputs.append(output)
    return Results(np.stack(outputs, axis=1), h, c)
