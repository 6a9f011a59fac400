"""The equations of the models in NumPy, in the dtype of their arguments."""

from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any


def sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def hard_sigmoid(z: Array) -> Array:
    """Keras 2's."""
    return np.clip(z * z.dtype.type(0.2) + z.dtype.type(0.5), 0, 1)


def lstm(x: Array, kernel: Array, recurrent: Array, bias: Array, gate: Any = sigmoid) -> Array:
    """All outputs [B, T, H] of an LSTM with the gates i, f, c, o. x is [B, T, I]."""
    h = c = np.zeros((len(x), len(recurrent)), x.dtype)
    outputs = []
    for step in x.swapaxes(0, 1):
        i, f, g, o = np.split(step @ kernel + h @ recurrent + bias, 4, axis=-1)
        c = gate(f) * c + gate(i) * np.tanh(g)
        h = gate(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs, 1)


def gru(x: Array, kernel: Array, recurrent: Array, biases: Array, h: Array | None = None) -> Array:
    """All outputs [B, T, H] of a GRU with reset_after=True and the gates z, r, h."""
    h = np.zeros((len(x), len(recurrent)), x.dtype) if h is None else h
    outputs = []
    for step in x.swapaxes(0, 1):
        xz, xr, xh = np.split(step @ kernel + biases[0], 3, axis=-1)
        hz, hr, hh = np.split(h @ recurrent + biases[1], 3, axis=-1)
        z = sigmoid(xz + hz)
        h = z * h + (1 - z) * np.tanh(xh + sigmoid(xr + hr) * hh)
        outputs.append(h)
    return np.stack(outputs, 1)


def backwards(run: Any, x: Array, *weights: Array) -> Array:
    """The outputs of a layer that reads a sequence from its end, in the order of time."""
    return run(x[:, ::-1], *weights)[:, ::-1]


def softmax(z: Array) -> Array:
    powers = np.exp(z - z.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def weighted_average(x: Array, weights: Array, epsilon: float = 1e-7) -> Array:
    """textgenrnn's attention: the mean of the steps, weighted by a softmax of x W. [B, C]."""
    logits = (x @ weights)[..., 0]
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    shares = powers / (powers.sum(1, keepdims=True) + x.dtype.type(epsilon))
    return (x * shares[..., np.newaxis]).sum(1)


def additive_attention(query: Array, value: Array, scale: Array | None) -> Array:
    """Keras' AdditiveAttention with the key equal to the value: [B, Tq, C]."""
    sums = np.tanh(query[:, :, np.newaxis] + value[:, np.newaxis])
    scores = (sums if scale is None else sums * scale).sum(-1)
    return softmax(scores) @ value
