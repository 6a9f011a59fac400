"""TensorFlow's LSTM block cell, one step and a sequence, forward and backward.

Forward, with [x, h_prev]·w + b split into zi, zc, zf, zo in the order of the gates:

    i  = σ(zi + wci∘cs_prev)                     (peepholes wci, wcf, wco only if use_peephole)
    f  = σ(zf + forget_bias + wcf∘cs_prev)
    ci = tanh(zc)
    cs = clip(i∘ci + f∘cs_prev)                  (only if cell_clip > 0)
    o  = σ(zo + wco∘cs)
    co = tanh(cs)
    h  = o∘co

Backward: dv (v_grad in the code) is the gradient of the loss with respect to v, v_up its upstream
term. The chain rule backwards through the lines above, with σ' = σ(1-σ), tanh' = 1-tanh²:

    do  = o_up + h_up∘co                         dzo = do∘o(1-o)
    dco = co_up + h_up∘o
    dcs = cs_up + dco∘(1-co²) + dzo∘wco          the clip counts as the identity (straight-through)
    dzi = (i_up + dcs∘ci)∘i(1-i)
    dzf = (f_up + dcs∘cs_prev)∘f(1-f)
    dzc = (ci_up + dcs∘i)∘(1-ci²)
    dcs_prev = dcs∘f + dzi∘wci + dzf∘wcf

    dwci = Σ_batch dzi∘cs_prev      dwcf = Σ_batch dzf∘cs_prev      dwco = Σ_batch dzo∘cs
    [dx, dh_prev] = dz·wᵀ           dw = [x, h_prev]ᵀ·dz            db = Σ_batch dz
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Array = np.ndarray
Store = Callable[[Array], Array]


def keep(a: Array) -> Array:
    """The `store` of a calculation that rounds nothing."""
    return a


class Inputs(NamedTuple):
    """Inputs of a cell (x is [B, I]) or of a sequence (x is [T, B, I]), or their gradients."""

    x: Array
    cs_prev: Array
    h_prev: Array
    w: Array
    wci: Array
    wcf: Array
    wco: Array
    b: Array


class Outputs(NamedTuple):
    """Outputs of a cell ([B, H] each) or of a sequence ([T, B, H]), or their gradients."""

    i: Array
    cs: Array
    f: Array
    o: Array
    ci: Array
    co: Array
    h: Array


class CellGradients(NamedTuple):
    inputs: Inputs
    gates: Array  # dz, [B, 4H], in gate order


def sigmoid(z: Array) -> Array:
    with np.errstate(over="ignore"):  # exp(-z) = inf gives the right limit, 0
        return 1 / (1 + np.exp(-z))


def clip(cs: Array, bound: float) -> Array:
    """Limits the real part; the imaginary part of a complex step passes: straight-through."""
    if bound <= 0:
        return cs
    if np.iscomplexobj(cs):
        return np.clip(cs.real, -bound, bound) + 1j * cs.imag
    return np.clip(cs, -bound, bound)


def activate(
    z: dict[str, Array],
    cs_prev: Array,
    peephole: tuple[Array, Array, Array] | None,
    cell_clip: float,
) -> Outputs:
    """From the pre-activations z["i"], z["c"], z["f"], z["o"] to the outputs."""
    wci, wcf, wco = peephole or (0, 0, 0)
    i = sigmoid(z["i"] + wci * cs_prev if peephole else z["i"])
    f = sigmoid(z["f"] + wcf * cs_prev if peephole else z["f"])
    ci = np.tanh(z["c"])
    cs = clip(i * ci + f * cs_prev, cell_clip)
    o = sigmoid(z["o"] + wco * cs if peephole else z["o"])
    co = np.tanh(cs)
    return Outputs(i, cs, f, o, ci, co, o * co)


def activate_backward(
    outputs: Outputs,
    upstream: Outputs,
    cs_prev: Array,
    peephole: tuple[Array, Array, Array] | None,
) -> tuple[dict[str, Array], Array]:
    """The gradients of z and of cs_prev."""
    i, cs, f, o, ci, co, _ = outputs
    del cs
    zo_grad = (upstream.o + upstream.h * co) * o * (1 - o)
    cs_grad = upstream.cs + (upstream.co + upstream.h * o) * (1 - co * co)
    if peephole:
        cs_grad = cs_grad + zo_grad * peephole[2]
    zi_grad = (upstream.i + cs_grad * ci) * i * (1 - i)
    zf_grad = (upstream.f + cs_grad * cs_prev) * f * (1 - f)
    zc_grad = (upstream.ci + cs_grad * i) * (1 - ci * ci)
    cs_prev_grad = cs_grad * f
    if peephole:
        cs_prev_grad = cs_prev_grad + zi_grad * peephole[0] + zf_grad * peephole[1]
    return {"i": zi_grad, "c": zc_grad, "f": zf_grad, "o": zo_grad}, cs_prev_grad


def cell(
    inputs: Inputs,
    *,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
    gate_order: str = "icfo",
) -> Outputs:
    """One step. gate_order names the four blocks of the columns of w and b."""
    x, cs_prev, h_prev, w, wci, wcf, wco, b = inputs
    pre = np.concatenate([x, h_prev], axis=1) @ w + b
    z = dict(zip(gate_order, np.split(pre, 4, axis=1), strict=True))
    z["f"] = z["f"] + z["f"].dtype.type(forget_bias)
    return activate(z, cs_prev, (wci, wcf, wco) if use_peephole else None, cell_clip)


def cell_backward(
    inputs: Inputs,
    outputs: Outputs,
    upstream: Outputs,
    *,
    use_peephole: bool = False,
    gate_order: str = "icfo",
    store: Store = keep,
) -> CellGradients:
    """Gradients of all inputs, from saved outputs and the gradients of all seven outputs.

    `store` is applied to dz before it is multiplied with anything.
    """
    x, cs_prev, h_prev, w, wci, wcf, wco, _ = inputs
    peephole = (wci, wcf, wco) if use_peephole else None
    z_grad, cs_prev_grad = activate_backward(outputs, upstream, cs_prev, peephole)
    z_grad = {gate: store(a) for gate, a in z_grad.items()}
    gates = np.concatenate([z_grad[gate] for gate in gate_order], axis=1)
    xh_grad = gates @ w.T
    w_grad = np.concatenate([x, h_prev], axis=1).T @ gates
    if use_peephole:
        wci_grad, wcf_grad, wco_grad = (
            (z_grad["i"] * cs_prev).sum(0),
            (z_grad["f"] * cs_prev).sum(0),
            (z_grad["o"] * outputs.cs).sum(0),
        )
    else:
        wci_grad, wcf_grad, wco_grad = np.zeros_like(wci), np.zeros_like(wcf), np.zeros_like(wco)
    x_grad, h_prev_grad = xh_grad[:, : x.shape[1]], xh_grad[:, x.shape[1] :]
    return CellGradients(
        Inputs(
            x_grad, cs_prev_grad, h_prev_grad, w_grad, wci_grad, wcf_grad, wco_grad, gates.sum(0)
        ),
        gates,
    )


def zero_upstream(outputs: Outputs, **given: Array) -> Outputs:
    """Gradients of the outputs: those given, zero for the rest."""
    return Outputs(*map(np.zeros_like, outputs))._replace(**given)


def sequence(
    seq_len_max: int,
    inputs: Inputs,
    *,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
    gate_order: str = "icfo",
    store: Store = keep,
) -> Outputs:
    """The cell for t = 0 … seq_len_max-1; all seven outputs are zero from there on.

    `store` is applied to every output of a step before the next step reads it: a rounding, for
    types that keep their results in fewer bits than they calculate with.
    """
    shape = (*inputs.x.shape[:2], inputs.cs_prev.shape[1])
    outputs = Outputs(*(np.zeros(shape, np.result_type(*inputs)) for _ in Outputs._fields))
    cs, h = inputs.cs_prev, inputs.h_prev
    for t in range(seq_len_max):
        step = cell(
            inputs._replace(x=inputs.x[t], cs_prev=cs, h_prev=h),
            forget_bias=forget_bias,
            cell_clip=cell_clip,
            use_peephole=use_peephole,
            gate_order=gate_order,
        )
        for whole, value in zip(outputs, step, strict=True):
            whole[t] = store(value)
        cs, h = outputs.cs[t], outputs.h[t]
    return outputs


def sequence_backward(
    seq_len_max: int,
    inputs: Inputs,
    outputs: Outputs,
    upstream: Outputs,
    *,
    use_peephole: bool = False,
    gate_order: str = "icfo",
    store: Store = keep,
) -> Inputs:
    """Backpropagation through time: the gradients of cs and h of step t are the upstream ones
    plus those that step t+1 hands to its cs_prev and h_prev. Parameters sum over the steps."""
    dtype = np.result_type(*inputs, *outputs, *upstream)
    total = Inputs(*(np.zeros(a.shape, dtype) for a in inputs))
    cs_grad, h_grad = total.cs_prev, total.h_prev
    for t in reversed(range(seq_len_max)):
        step_inputs = inputs._replace(
            x=inputs.x[t],
            cs_prev=outputs.cs[t - 1] if t else inputs.cs_prev,
            h_prev=outputs.h[t - 1] if t else inputs.h_prev,
        )
        step_upstream = Outputs(*(a[t] for a in upstream))
        step_upstream = step_upstream._replace(
            cs=step_upstream.cs + cs_grad, h=step_upstream.h + h_grad
        )
        step, _ = cell_backward(
            step_inputs,
            Outputs(*(a[t] for a in outputs)),
            step_upstream,
            use_peephole=use_peephole,
            gate_order=gate_order,
            store=store,
        )
        total.x[t] = store(step.x)
        cs_grad, h_grad = store(step.cs_prev), store(step.h_prev)
        for name in ("w", "wci", "wcf", "wco", "b"):
            getattr(total, name)[...] += getattr(step, name)
    return Inputs(*map(store, total._replace(cs_prev=cs_grad, h_prev=h_grad)))
