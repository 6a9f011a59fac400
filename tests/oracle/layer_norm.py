"""The layer-normalised LSTM and GRU of tf_lstm_ops.keras, forward and backward, in NumPy.

With LN(a) = (a - mean(a)) / sqrt(variance(a) + epsilon), over all gates and units of a row:

    z_x = input_gamma∘LN(x·kernel)    z_h = recurrent_gamma∘LN(h·recurrent_kernel)

LSTM, gates in the order i, f, c, o; s the logistic function:

    z = z_x + z_h + bias              c' = s(z_f)∘c + s(z_i)∘tanh(z_c)
    n = state_gamma∘LN(c') + state_beta    h = s(z_o)∘tanh(n)

The next step reads c', or n with `carries_n`. GRU, gates in the order z, r, h, bias [2, 3H]:

    u = s(z_xz + b_z + z_hz + d_z)    r = s(z_xr + b_r + z_hr + d_r)
    h = u∘h + (1 - u)∘tanh(z_xh + b_h + r∘(z_hh + d_h))

Sources: J. Ba, J. Kiros, G. Hinton, "Layer Normalization" (2016); haste's documentation of
LayerNormLSTM and LayerNormGRU; TensorFlow Addons' documentation of LayerNormLSTMCell. All functions
compute in the type of their arguments, complex numbers among them.
"""

from typing import NamedTuple

import numpy as np

Array = np.ndarray


class Arguments(NamedTuple):
    x: Array  # [B, T, I]
    h0: Array  # [B, H]
    c0: Array  # [B, H], of an LSTM; [0] of a GRU, as the state's scale and offset
    kernel: Array  # [I, G H]
    recurrent_kernel: Array  # [H, G H]
    bias: Array  # [4H], or [2, 3H] of a GRU
    input_gamma: Array  # [G H]
    recurrent_gamma: Array  # [G H]
    state_gamma: Array  # [H]
    state_beta: Array  # [H]


class Options(NamedTuple):
    mask: Array | None = None  # [B, T]
    go_backwards: bool = False
    zero_output: bool = False  # at masked steps; else the output before
    epsilon: float = 1e-5
    carries_n: bool = False
    input_dropout: Array | None = None  # [G, B, I]
    recurrent_dropout: Array | None = None  # [G, B, H]


class Results(NamedTuple):
    outputs: Array  # [B, T, H], in the order in which they are made
    h: Array  # [B, H]
    c: Array  # [B, H]; [0] of a GRU


def _norm(a: Array, epsilon: float) -> tuple[Array, Array]:
    d = a - a.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt((d * d).mean(axis=1, keepdims=True) + np.asarray(epsilon, a.real.dtype))
    return d * scale, scale


def _norm_backward(grad: Array, normalised: Array, scale: Array) -> Array:
    mean = grad.mean(axis=1, keepdims=True)
    return scale * (grad - mean - normalised * (grad * normalised).mean(axis=1, keepdims=True))


def _sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def _product(value: Array, weights: Array, dropout: Array | None) -> Array:
    if dropout is None:
        return value @ weights
    columns = np.split(weights, len(dropout), axis=1)
    return np.concatenate(
        [(value * d) @ column for d, column in zip(dropout, columns, strict=True)], 1
    )


def _product_backward(
    grad: Array, value: Array, weights: Array, dropout: Array | None
) -> tuple[Array, Array]:
    """The gradients of value and weights."""
    if dropout is None:
        return grad @ weights.T, value.T @ grad
    pieces = zip(
        dropout,
        np.split(grad, len(dropout), axis=1),
        np.split(weights, len(dropout), axis=1),
        strict=True,
    )
    found = [((g @ w.T) * d, (value * d).T @ g) for d, g, w in pieces]
    return sum(v for v, _ in found), np.concatenate([w for _, w in found], axis=1)


class _Terms(NamedTuple):
    """The normalised products of a step."""

    x: Array
    h: Array
    x_scale: Array
    h_scale: Array


class _Step(NamedTuple):
    terms: _Terms
    gates: tuple[Array, ...]
    h: Array  # before the step
    c: Array


def _terms(arguments: Arguments, options: Options, x: Array, h: Array) -> _Terms:
    a, a_scale = _norm(_product(x, arguments.kernel, options.input_dropout), options.epsilon)
    r = _product(h, arguments.recurrent_kernel, options.recurrent_dropout)
    r, r_scale = _norm(r, options.epsilon)
    return _Terms(a, r, a_scale, r_scale)


def _lstm(arguments: Arguments, options: Options, x: Array, h: Array, c: Array):
    terms = _terms(arguments, options, x, h)
    z = arguments.input_gamma * terms.x + arguments.recurrent_gamma * terms.h + arguments.bias
    zi, zf, zc, zo = np.split(z, 4, axis=1)
    i, f, g, o = _sigmoid(zi), _sigmoid(zf), np.tanh(zc), _sigmoid(zo)
    new_c = f * c + i * g
    v, scale = _norm(new_c, options.epsilon)
    n = arguments.state_gamma * v + arguments.state_beta
    t = np.tanh(n)
    return o * t, n if options.carries_n else new_c, _Step(terms, (i, f, g, o, t, v, scale), h, c)


def _gru(arguments: Arguments, options: Options, x: Array, h: Array, c: Array):
    terms = _terms(arguments, options, x, h)
    xz, xr, xh = np.split(arguments.input_gamma * terms.x + arguments.bias[0], 3, axis=1)
    hz, hr, hh = np.split(arguments.recurrent_gamma * terms.h + arguments.bias[1], 3, axis=1)
    u, r = _sigmoid(xz + hz), _sigmoid(xr + hr)
    n = np.tanh(xh + r * hh)
    return u * h + (1 - u) * n, c, _Step(terms, (u, r, n, hh), h, c)


def _run(arguments: Arguments, options: Options) -> tuple[Results, list[tuple[int, Array, _Step]]]:
    is_lstm = arguments.c0.ndim == 2
    x, h, c = arguments.x, arguments.h0, arguments.c0
    steps, outputs, output = [], [], np.zeros_like(h)
    for t in range(x.shape[1])[:: -1 if options.go_backwards else 1]:
        valid = np.ones((len(x), 1), bool) if options.mask is None else options.mask[:, t, None]
        inputs = np.where(valid, x[:, t], 0)
        new_h, new_c, step = (_lstm if is_lstm else _gru)(arguments, options, inputs, h, c)
        output = np.where(valid, new_h, 0 if options.zero_output else output)
        h, c = np.where(valid, new_h, h), np.where(valid, new_c, c) if is_lstm else c
        outputs.append(output)
        steps.append((t, valid, step))
    return Results(np.stack(outputs, axis=1), h, c), steps


def layer_norm(arguments: Arguments, options: Options) -> Results:
    """The outputs and the final states."""
    return _run(arguments, options)[0]


def _lstm_backward(arguments: Arguments, options: Options, step: _Step, dh: Array, dc: Array):
    """The gradients of the terms of x and h, of h and c directly, and of the state's weights."""
    i, f, g, o, t, v, scale = step.gates
    dn = dh * o * (1 - t * t) + (dc if options.carries_n else 0)
    d = _norm_backward(dn * arguments.state_gamma, v, scale) + (0 if options.carries_n else dc)
    dz = [d * g * i * (1 - i), d * step.c * f * (1 - f), d * i * (1 - g * g), dh * t * o * (1 - o)]
    dz = np.concatenate(dz, axis=1)
    return dz, dz, np.zeros_like(dh), d * f, (dn * v).sum(0), dn.sum(0), dz.sum(0)


def _gru_backward(arguments: Arguments, options: Options, step: _Step, dh: Array, dc: Array):
    u, r, n, hh = step.gates
    dn = dh * (1 - u) * (1 - n * n)
    du, dr = dh * (step.h - n) * u * (1 - u), dn * hh * r * (1 - r)
    dx, dr = np.concatenate([du, dr, dn], axis=1), np.concatenate([du, dr, dn * r], axis=1)
    bias = np.stack([dx.sum(0), dr.sum(0)])
    return dx, dr, dh * u, dc, arguments.state_gamma, arguments.state_beta, bias


def layer_norm_backward(arguments: Arguments, grads: Results, options: Options) -> Arguments:
    """The gradients of the arguments; of a GRU's c0, scale and offset nothing that counts."""
    is_lstm = arguments.c0.ndim == 2
    dtype = np.result_type(*arguments, *grads)
    found = {name: np.zeros(value.shape, dtype) for name, value in arguments._asdict().items()}
    dh, dc, carried = grads.h, grads.c, np.zeros_like(grads.h)
    _, steps = _run(arguments, options)
    for k, (t, valid, step) in reversed(list(enumerate(steps))):
        carried = carried + grads.outputs[:, k]
        new_h, new_c = np.where(valid, dh + carried, 0), np.where(valid, dc, 0) if is_lstm else dc
        carried = np.where(valid | options.zero_output, 0, carried)
        backward = _lstm_backward if is_lstm else _gru_backward
        dx, dr, h, c, gamma, beta, bias = backward(arguments, options, step, new_h, new_c)
        terms = step.terms
        found["bias"] += bias
        found["input_gamma"] += (dx * terms.x).sum(0)
        found["recurrent_gamma"] += (dr * terms.h).sum(0)
        if is_lstm:
            found["state_gamma"] += gamma
            found["state_beta"] += beta
            dc = np.where(valid, c, dc)
        dx = _norm_backward(dx * arguments.input_gamma, terms.x, terms.x_scale)
        dr = _norm_backward(dr * arguments.recurrent_gamma, terms.h, terms.h_scale)
        inputs = np.where(valid, arguments.x[:, t], 0)
        dx, kernel = _product_backward(dx, inputs, arguments.kernel, options.input_dropout)
        dr, recurrent = _product_backward(
            dr, step.h, arguments.recurrent_kernel, options.recurrent_dropout
        )
        found["x"][:, t] = np.where(valid, dx, 0)
        found["kernel"] += kernel
        found["recurrent_kernel"] += recurrent
        dh = np.where(valid, h + dr, dh)
    return Arguments(**{**found, "h0": dh, "c0": dc})
