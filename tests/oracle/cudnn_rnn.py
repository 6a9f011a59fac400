"""The cuDNN family: multi-layer LSTMs, GRUs and vanilla RNNs, forward and backward.

A model has `layers` × `directions` pseudo-layers. Each takes a, the outputs of the layer below
(both directions side by side, times the dropout factors), and calculates for t over its time, with
x_g = W_g·a + bW_g (skip input: x_g = a + bW_g) and r_g = R_g·h_prev + bR_g for each gate g:

    lstm (i, f, c, o)   i, f, o = σ(x + r), c̃ = tanh(x + r), c = f∘c_prev + i∘c̃, m = o∘tanh(c)
                        h = m, or with a projection h = W_p·m
    gru  (r, u, n)      r, u = σ(x + r),  n = tanh(x_n + r∘r_n),  h = (1-u)∘n + u∘h_prev
    rnn_tanh, rnn_relu  h = tanh(x + r) or max(x + r, 0)

Time of direction 0 runs from 0 to length-1, of direction 1 from length-1 to 0, per row. From
`length` on outputs are zero, and so are the gradients of the inputs.

Backward is the chain rule through these lines in the opposite order: v_grad is the gradient of v.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .block_cell import Array, Store, keep, sigmoid

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


class Arguments(NamedTuple):
    """The differentiable arguments, or their gradients."""

    input: Array  # [T, B, I]
    input_h: Array  # [layers·directions, B, P]
    input_c: Array  # [layers·directions, B, H]; of any shape, and not used, but for lstm
    params: Array  # [params_size]


class Results(NamedTuple):
    """What the op returns, or the gradients of that."""

    output: Array  # [T, B, directions·P]
    output_h: Array  # [layers·directions, B, P]
    output_c: Array  # [layers·directions, B, H]; a scalar zero but for lstm


class Layer(NamedTuple):
    """The parameters of one pseudo-layer, or their gradients."""

    w: Array  # [G, H, width of a]; [G, H, 0] for a skip input
    r: Array  # [G, H, P]
    projection: Array  # [P, H], or [0, H] for none
    bw: Array  # [G, H]
    br: Array  # [G, H]


@dataclass(frozen=True)
class Model:
    mode: str
    inputs: int
    units: int
    layers: int = 1
    directions: int = 1
    num_proj: int = 0  # 0 or `units` for none
    skip_input: bool = False
    time_major: bool = True  # otherwise the first two dimensions of all arguments are exchanged

    @property
    def is_projected(self) -> bool:
        return 0 < self.num_proj < self.units

    @property
    def hidden(self) -> int:
        """P, the size of h."""
        return self.num_proj if self.is_projected else self.units

    @cached_property
    def shapes(self) -> list[Layer]:
        """Of the parameters of each pseudo-layer."""
        gates = GATES[self.mode]
        shapes = []
        for k in range(self.layers * self.directions):
            first = k < self.directions
            width = self.inputs * (not self.skip_input) if first else self.directions * self.hidden
            shapes.append(
                Layer(
                    (gates, self.units, width),
                    (gates, self.units, self.hidden),
                    (self.hidden if self.is_projected else 0, self.units),
                    (gates, self.units),
                    (gates, self.units),
                )
            )
        return shapes

    @property
    def params_size(self) -> int:
        return sum(int(np.prod(shape)) for layer in self.shapes for shape in layer)

    def split(self, params: Array) -> list[Layer]:
        """All matrices of all pseudo-layers come first, then all biases."""
        arrays: list[list[Array]] = [[] for _ in self.shapes]
        start = 0
        for fields in (slice(0, 3), slice(3, 5)):
            for found, layer in zip(arrays, self.shapes, strict=True):
                for shape in layer[fields]:
                    size = int(np.prod(shape))
                    found.append(params[start : start + size].reshape(shape))
                    start += size
        if start != params.size:
            raise ValueError(f"{params.size} parameters for a model of {start}")
        return [Layer(*found) for found in arrays]

    def join(self, layers: list[Layer]) -> Array:
        matrices = [a.ravel() for layer in layers for a in layer[:3]]
        return np.concatenate(matrices + [a.ravel() for layer in layers for a in layer[3:]])

    def majors_exchanged(self, values: Arguments | Results) -> Arguments | Results:
        """Converts between time-major and batch-major if the model is batch-major."""
        if self.time_major:
            return values
        return type(values)(*(a.swapaxes(0, 1) if a.ndim == 3 else a for a in values))


# --- one step --------------------------------------------------------------------------------


class Step(NamedTuple):
    """What a step of a pseudo-layer leaves to the backward pass."""

    t: int
    h_prev: Array  # [B, P]
    c_prev: Array  # [B, H]
    recurrent: Array  # r_g, [G, B, H]
    gates: tuple[Array, ...]  # [B, H] each
    c: Array  # [B, H]; zero but for lstm
    m: Array  # [B, H], h before the projection


class Cell(NamedTuple):
    # forward(x_g, r_g, h_prev, c_prev): the gates, c and m.
    forward: Callable[[Array, Array, Array, Array], tuple[tuple[Array, ...], Array, Array]]
    # backward(step, m_grad, c_grad): the gradients of x_g and r_g ([G, B, H]), the term of h_prev's
    # gradient that does not come through r_g, and the gradient of c_prev.
    backward: Callable[[Step, Array, Array], tuple[Array, Array, Array | float, Array]]


def lstm(x, r, h_prev, c_prev):
    zi, zf, zc, zo = x + r
    i, f, g, o = sigmoid(zi), sigmoid(zf), np.tanh(zc), sigmoid(zo)
    c = f * c_prev + i * g
    return (i, f, g, o), c, o * np.tanh(c)


def lstm_backward(step, m_grad, c_grad):
    i, f, g, o = step.gates
    co = np.tanh(step.c)
    c_grad = c_grad + m_grad * o * (1 - co * co)
    z_grad = np.stack(
        [
            c_grad * g * i * (1 - i),
            c_grad * step.c_prev * f * (1 - f),
            c_grad * i * (1 - g * g),
            m_grad * co * o * (1 - o),
        ]
    )
    return z_grad, z_grad, 0.0, c_grad * f


def gru(x, r, h_prev, c_prev):
    reset, u = sigmoid(x[0] + r[0]), sigmoid(x[1] + r[1])
    n = np.tanh(x[2] + reset * r[2])
    return (reset, u, n), c_prev, (1 - u) * n + u * h_prev


def gru_backward(step, m_grad, c_grad):
    reset, u, n = step.gates
    n_grad = m_grad * (1 - u) * (1 - n * n)
    reset_grad = n_grad * step.recurrent[2] * reset * (1 - reset)
    u_grad = m_grad * (step.h_prev - n) * u * (1 - u)
    return (
        np.stack([reset_grad, u_grad, n_grad]),
        np.stack([reset_grad, u_grad, n_grad * reset]),
        m_grad * u,
        c_grad,
    )


def rnn_tanh(x, r, h_prev, c_prev):
    h = np.tanh(x[0] + r[0])
    return (h,), c_prev, h


def rnn_tanh_backward(step, m_grad, c_grad):
    z_grad = (m_grad * (1 - step.m * step.m))[None]
    return z_grad, z_grad, 0.0, c_grad


def rnn_relu(x, r, h_prev, c_prev):
    z = x[0] + r[0]
    h = np.where(z.real <= 0, 0, z)  # NaN stays NaN
    return (h,), c_prev, h


def rnn_relu_backward(step, m_grad, c_grad):
    z_grad = np.where(step.m.real > 0, m_grad, 0)[None]
    return z_grad, z_grad, 0.0, c_grad


CELLS = {
    "lstm": Cell(lstm, lstm_backward),
    "gru": Cell(gru, gru_backward),
    "rnn_tanh": Cell(rnn_tanh, rnn_tanh_backward),
    "rnn_relu": Cell(rnn_relu, rnn_relu_backward),
}


def transposed(a: Array) -> Array:
    return a.swapaxes(-1, -2)


# --- one pseudo-layer ------------------------------------------------------------------------


class Pass(NamedTuple):
    """One pseudo-layer over its time."""

    a: Array  # [T, B, width]
    steps: list[Step]
    output: Array  # [T, B, P]
    h: Array
    c: Array


def run_layer(
    model: Model, k: int, layer: Layer, a: Array, h: Array, c: Array, valid: Array, store: Store
) -> Pass:
    output = np.zeros((*a.shape[:2], model.hidden), np.result_type(a, h, *layer))
    steps = []
    for t in range(a.shape[0])[:: -1 if k % model.directions else 1]:
        x = a[t] if model.skip_input and k < model.directions else a[t] @ transposed(layer.w)
        x = x + layer.bw[:, None, :]
        r = h @ transposed(layer.r) + layer.br[:, None, :]
        gates, cell, m = CELLS[model.mode].forward(x, r, h, c)
        gates, cell, m = tuple(map(store, gates)), store(cell), store(m)
        steps.append(Step(t, h, c, r, gates, cell, m))
        new_h = store(m @ layer.projection.T) if model.is_projected else m
        output[t] = np.where(valid[t], new_h, 0)
        h, c = np.where(valid[t], new_h, h), np.where(valid[t], cell, c)
    return Pass(a, steps, output, h, c)


def run_layer_backward(
    model: Model, k: int, layer: Layer, saved: Pass, upstream: Results, valid: Array
) -> tuple[Array, Array, Array, Layer]:
    """The gradients of a, of the initial h and c, and of the parameters."""
    _, h_grad, c_grad = upstream
    a_grad = np.zeros(saved.a.shape, np.result_type(saved.output, upstream.output))
    total = Layer(*(np.zeros(p.shape, a_grad.dtype) for p in layer))
    for step in reversed(saved.steps):
        now = valid[step.t]
        h_now_grad = np.where(now, upstream.output[step.t] + h_grad, 0)
        m_grad = h_now_grad @ layer.projection if model.is_projected else h_now_grad
        x_grad, r_grad, h_prev_grad, c_prev_grad = CELLS[model.mode].backward(
            step, m_grad, np.where(now, c_grad, 0)
        )
        total.r[...] += transposed(r_grad) @ step.h_prev
        total.bw[...] += x_grad.sum(1)
        total.br[...] += r_grad.sum(1)
        if model.is_projected:
            total.projection[...] += h_now_grad.T @ step.m
        if model.skip_input and k < model.directions:
            a_grad[step.t] = x_grad.sum(0)
        else:
            total.w[...] += transposed(x_grad) @ saved.a[step.t]
            a_grad[step.t] = (x_grad @ layer.w).sum(0)
        h_grad = np.where(now, (r_grad @ layer.r).sum(0) + h_prev_grad, h_grad)
        c_grad = np.where(now, c_prev_grad, c_grad)
    return a_grad, h_grad, c_grad, total


# --- the model -------------------------------------------------------------------------------


def _validity(lengths: Array | None, time: int, batch: int) -> Array:
    """[T, B, 1]: whether the row still runs at t."""
    lengths = np.full(batch, time) if lengths is None else np.asarray(lengths)
    return (np.arange(time)[:, None] < lengths)[:, :, None]


def _cell_states(model: Model, arguments: Arguments) -> Array:
    """Initial c of all pseudo-layers; zeros of H where the mode has none."""
    if model.mode == "lstm":
        return arguments.input_c
    states = model.layers * model.directions
    return np.zeros((states, arguments.input.shape[1], model.units), arguments.input.dtype)


def _run(
    model: Model, arguments: Arguments, valid: Array, dropout: Array | None, store: Store
) -> list[Pass]:
    a = np.where(valid, arguments.input, 0)
    layers, cells = model.split(arguments.params), _cell_states(model, arguments)
    passes: list[Pass] = []
    for first in range(0, len(layers), model.directions):
        if first and dropout is not None:
            a = store(a * dropout[first // model.directions - 1])
        for k in range(first, first + model.directions):
            h, c = arguments.input_h[k], cells[k]
            passes.append(run_layer(model, k, layers[k], a, h, c, valid, store))
        a = np.concatenate([p.output for p in passes[first:]], axis=2)
    return passes


def cudnn_rnn(
    model: Model,
    arguments: Arguments,
    lengths: Array | None = None,
    dropout: Array | None = None,
    store: Store = keep,
) -> Results:
    """The results; `dropout` are factors, [layers-1, T, B, directions·P], time-major always.

    `store` is applied to the results of every step before anything reads them: a rounding, for
    types that keep their results in fewer bits than they calculate with.
    """
    arguments = model.majors_exchanged(arguments)
    valid = _validity(lengths, *arguments.input.shape[:2])
    passes = _run(model, arguments, valid, dropout, store)
    output = np.concatenate([p.output for p in passes[-model.directions :]], axis=2)
    output_c = np.stack([p.c for p in passes]) if model.mode == "lstm" else np.zeros(())
    return model.majors_exchanged(Results(output, np.stack([p.h for p in passes]), output_c))


def cudnn_rnn_backward(
    model: Model,
    arguments: Arguments,
    upstream: Results,
    lengths: Array | None = None,
    dropout: Array | None = None,
    store: Store = keep,
) -> Arguments:
    """Backpropagation through time: the gradients of all arguments."""
    arguments, upstream = map(model.majors_exchanged, (arguments, upstream))
    valid = _validity(lengths, *arguments.input.shape[:2])
    passes, layers = _run(model, arguments, valid, dropout, store), model.split(arguments.params)
    dtype = np.result_type(*arguments, *upstream)
    h_grad, c_grad = (
        np.zeros(arguments.input_h.shape, dtype),
        np.zeros(arguments.input_c.shape, dtype),
    )
    parameters: list[Layer] = []  # in the opposite order
    below = upstream.output
    for k in reversed(range(len(layers))):
        direction = k % model.directions
        if direction == model.directions - 1:
            above, below = below, np.zeros(passes[k].a.shape, dtype)
        columns = slice(direction * model.hidden, (direction + 1) * model.hidden)
        upstream_c = upstream.output_c[k] if model.mode == "lstm" else np.zeros_like(passes[k].c)
        given = Results(above[:, :, columns], upstream.output_h[k], upstream_c)
        a_grad, h_grad[k], c_k_grad, gradients = run_layer_backward(
            model, k, layers[k], passes[k], given, valid
        )
        if model.mode == "lstm":
            c_grad[k] = c_k_grad
        parameters.append(gradients)
        below = store(below + a_grad)
        if direction == 0 and k and dropout is not None:
            below = below * dropout[k // model.directions - 1]
    total = Arguments(below, h_grad, c_grad, model.join(parameters[::-1]))
    return model.majors_exchanged(Arguments(*map(store, total)))
