"""The LSTM of Apple's MPSGraph, forward and backward.

For t over the time of a direction, with the gates i, f, z, o side by side in all weights (i, z, f,
o with forget_gate_last), m the mask and act_g the activation of gate g:

    y_g = act_g((h_prev∘m)·R_gᵀ + x·W_gᵀ + b_g + p_g∘c_prev)      for all four gates
    c   = f∘c_prev + i∘z
    h   = o∘act(c)

Without W the source holds x·W_gᵀ. A direction is a slice of the last axis of source (without W),
init_state, init_cell, mask and all results, of the first axis of W and b, and a row of R and p.
Results are at the time step of their input.

Backward, where dv (v_grad in the code) is the gradient of v and act' is computed from the value of
act:

    dc     += dh∘o∘act'(c)
    do, di, df, dz = dh∘act(c), dc∘z, dc∘c_prev, dc∘i, each + the upstream of that gate
    da_g    = dy_g∘act_g'                       a_g is what the activation is applied to
    dc_prev = dc∘f + Σ_g da_g∘p_g               dh_prev = m∘Σ_g da_g·R_g
    dx = Σ_g da_g·W_g    dW_g = Σ da_gᵀ·x    db_g = Σ da_g    dp_g = Σ da_g∘c_prev
    dR_g = Σ da_gᵀ·(h_prev∘m)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .block_cell import Array, sigmoid


class Arguments(NamedTuple):
    """The differentiable arguments, or their gradients, in the order in which the op returns these.

    D is 1, or 2 if bidirectional. None: absent.
    """

    source: Array  # [T, N, I], without input_weight [T, N, D*4H]
    recurrent_weight: Array  # [4H, H], or [2, 4H, H]
    input_weight: Array | None = None  # [D*4H, I]
    bias: Array | None = None  # [D*4H]
    peephole: Array | None = None  # [4H], or [2, 4H]
    init_state: Array | None = None  # [N, D*H]
    init_cell: Array | None = None  # [N, D*H]


class Results(NamedTuple):
    """What the op calculates, or the gradients of that; the final state and cell are those after
    the last step of each direction."""

    output: Array  # [T, N, D*H]
    state: Array  # [N, D*H]
    final_cell: Array  # [N, D*H]
    cell: Array  # [T, N, D*H]
    z_state: Array  # [T, N, D*4H], the gates, after their activations


@dataclass(frozen=True)
class Options:
    mask: Array | None = None  # what broadcasts to [N, D*H]
    reverse: bool = False  # ignored if bidirectional
    bidirectional: bool = False
    forget_gate_last: bool = False
    input_gate_activation: str = "sigmoid"
    forget_gate_activation: str = "sigmoid"
    cell_gate_activation: str = "tanh"
    output_gate_activation: str = "sigmoid"
    activation: str = "tanh"

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def order(self) -> str:
        return "izfo" if self.forget_gate_last else "ifzo"

    def activation_of(self, gate: str) -> "Activation":
        names = {
            "i": self.input_gate_activation,
            "f": self.forget_gate_activation,
            "z": self.cell_gate_activation,
            "o": self.output_gate_activation,
        }
        return ACTIVATIONS[names[gate]]

    def steps(self, direction: int, time: int) -> list[int]:
        """The time steps in the order of the calculation."""
        backwards = direction == 1 if self.bidirectional else self.reverse
        return list(range(time))[:: -1 if backwards else 1]


# --- activations -----------------------------------------------------------------------------


class Activation(NamedTuple):
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]  # of the value; at a kink 0


def _relu(x: Array) -> Array:
    return np.where(x.real <= 0, 0, x)  # NaN stays NaN


def _hard_sigmoid(x: Array) -> Array:
    y = 0.2 * x + 0.5
    return np.where(y.real <= 0, 0, np.where(y.real >= 1, 1, y))


ACTIVATIONS = {
    "none": Activation(lambda x: x, np.ones_like),
    "relu": Activation(_relu, lambda y: np.where(y.real > 0, np.ones_like(y), 0)),
    "tanh": Activation(np.tanh, lambda y: 1 - y * y),
    "sigmoid": Activation(sigmoid, lambda y: y * (1 - y)),
    "hard_sigmoid": Activation(
        _hard_sigmoid,
        lambda y: np.where((y.real > 0) & (y.real < 1), np.full_like(y, 0.2), 0),
    ),
}


# --- one direction ---------------------------------------------------------------------------


class Direction(NamedTuple):
    """What one direction works on; absent arguments count as zero, an absent mask as one."""

    x: Array  # [T, N, I]
    r: Array  # [4H, H]
    w: Array | None  # [4H, I]
    b: Array  # [4H]
    p: Array  # [4H]
    h: Array  # [N, H]
    c: Array  # [N, H]
    m: Array  # [N, H]


def _directions(arguments: Arguments, options: Options) -> list[Direction]:
    source, r, w, b, p, h, c = arguments
    count, dtype = options.directions, np.result_type(*(a for a in arguments if a is not None))
    states = (source.shape[1], count * r.shape[-1])
    rows = r.shape[-2]
    b = np.zeros(count * rows, dtype) if b is None else b
    p = np.zeros(count * rows, dtype) if p is None else p.ravel()
    h, c = (np.zeros(states, dtype) if a is None else a for a in (h, c))
    mask = np.broadcast_to(np.ones((), dtype) if options.mask is None else options.mask, states)
    operands = [
        [source] * count if w is not None else np.split(source, count, axis=2),
        r.reshape(count, rows, -1),
        [None] * count if w is None else np.split(w, count),
        *(np.split(a, count) for a in (b, p)),
        *(np.split(a, count, axis=1) for a in (h, c, mask)),
    ]
    return [Direction(*d) for d in zip(*operands, strict=True)]


def _run(d: Direction, steps: list[int], options: Options) -> Results:
    h, c = d.h, d.c
    shape, dtype = (*d.x.shape[:2], h.shape[1]), np.result_type(d.x, d.r, h, c, d.b, d.p)
    output, cell, z_state = (np.zeros((*shape[:2], k * shape[2]), dtype) for k in (1, 1, 4))
    for t in steps:
        x = d.x[t] if d.w is None else d.x[t] @ d.w.T
        a = (h * d.m) @ d.r.T + x + d.b + d.p * np.tile(c, 4)
        before = zip(options.order, np.split(a, 4, axis=1), strict=True)
        gates = {g: options.activation_of(g).value(v) for g, v in before}
        c = gates["f"] * c + gates["i"] * gates["z"]
        h = gates["o"] * ACTIVATIONS[options.activation].value(c)
        output[t], cell[t] = h, c
        z_state[t] = np.concatenate(list(gates.values()), axis=1)
    return Results(output, h, c, cell, z_state)


def _run_backward(
    d: Direction, steps: list[int], cell: Array, z_state: Array, upstream: Results, options: Options
) -> Direction:
    """The gradients; that of the mask is zero."""
    act = ACTIVATIONS[options.activation]
    saved = [dict(zip(options.order, np.split(z, 4, axis=1), strict=True)) for z in z_state]
    dtype = np.result_type(*(a for a in d if a is not None), cell, z_state, *upstream)
    total = Direction(*(None if a is None else np.zeros(a.shape, dtype) for a in d))
    h_grad, c_grad = upstream.state, upstream.final_cell
    for k in reversed(range(len(steps))):
        t, gates, g_c = steps[k], saved[steps[k]], act.value(cell[steps[k]])
        c_prev = cell[steps[k - 1]] if k else d.c
        h_prev = saved[steps[k - 1]]["o"] * act.value(c_prev) if k else d.h
        h_grad = h_grad + upstream.output[t]
        c_grad = c_grad + upstream.cell[t] + h_grad * gates["o"] * act.slope(g_c)
        y_grad = {
            "i": c_grad * gates["z"],
            "f": c_grad * c_prev,
            "z": c_grad * gates["i"],
            "o": h_grad * g_c,
        }
        given = zip(options.order, np.split(upstream.z_state[t], 4, axis=1), strict=True)
        a_grad = np.concatenate(
            [(y_grad[g] + up) * options.activation_of(g).slope(gates[g]) for g, up in given], axis=1
        )
        total.r[...] += a_grad.T @ (h_prev * d.m)
        total.b[...] += a_grad.sum(0)
        total.p[...] += (a_grad * np.tile(c_prev, 4)).sum(0)
        total.x[t] = a_grad if d.w is None else a_grad @ d.w
        if d.w is not None:
            total.w[...] += a_grad.T @ d.x[t]
        h_grad = a_grad @ d.r * d.m
        c_grad = c_grad * gates["f"] + sum(np.split(a_grad * d.p, 4, axis=1))
    return total._replace(h=h_grad, c=c_grad)


# --- both ------------------------------------------------------------------------------------


def mpsgraph_lstm(arguments: Arguments, options: Options | None = None) -> Results:
    options = options or Options()
    runs = [
        _run(d, options.steps(k, arguments.source.shape[0]), options)
        for k, d in enumerate(_directions(arguments, options))
    ]
    return Results(*(np.concatenate(results, axis=-1) for results in zip(*runs, strict=True)))


def mpsgraph_lstm_backward(
    arguments: Arguments,
    cell: Array,
    z_state: Array,
    upstream: Results,
    options: Options | None = None,
) -> Arguments:
    """The gradients of all arguments, None where there is none, from saved results."""
    options = options or Options()
    count = options.directions

    def of_direction(a: Array, k: int) -> Array:
        return np.split(a, count, axis=-1)[k]

    each = [
        _run_backward(
            d,
            options.steps(k, arguments.source.shape[0]),
            of_direction(cell, k),
            of_direction(z_state, k),
            Results(*(of_direction(u, k) for u in upstream)),
            options,
        )
        for k, d in enumerate(_directions(arguments, options))
    ]
    x, r, w, b, p, h, c, _ = zip(*each, strict=True)
    gradients = Arguments(
        source=np.concatenate(x, axis=2) if arguments.input_weight is None else sum(x),
        recurrent_weight=np.stack(r).reshape(arguments.recurrent_weight.shape),
        input_weight=None if arguments.input_weight is None else np.concatenate(w),
        bias=np.concatenate(b),
        peephole=np.concatenate(p),
        init_state=np.concatenate(h, axis=1),
        init_cell=np.concatenate(c, axis=1),
    )
    return Arguments(
        *(
            None if a is None else g.reshape(a.shape)
            for a, g in zip(arguments, gradients, strict=True)
        )
    )
