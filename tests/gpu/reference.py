"""Random problems, and their results and gradients in float64 by PyTorch."""

from __future__ import annotations

from typing import Any

import torch
from backend import OUTPUTS, Case, Tensors

MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}


def random(shape: Any, scale: float = 1.0, device: str = "cpu") -> torch.Tensor:
    """Numbers that every type holds."""
    return (scale * torch.randn(shape, device=device)).bfloat16().double()


def problem(case: Case, device: str = "cpu") -> tuple[Tensors, Tensors]:
    """Inputs and upstream gradients, in float64."""
    torch.manual_seed(0)
    if case.by == "cudnn":
        return _rnn_problem(case, device)
    units = case.units
    given = {
        "x": random([case.batch, case.time, case.inputs], device=device),
        "h0": random([case.batch, units], device=device),
        "c0": random([case.batch, units], device=device),
        # Of the size at which Keras starts.
        "kernel": random([case.inputs, 4 * units], case.inputs**-0.5, device),
        "recurrent": random([units, 4 * units], units**-0.5, device),
        "bias": random([4 * units], 0.5, device),
    }
    if case.peephole:
        given["peephole"] = random([3, units], 0.5, device)
    if case.masked:
        given["mask"] = torch.rand([case.batch, case.time], device=device) > 0.3
    steps, final = [case.batch, case.time, units], [case.batch, units]
    return given, {
        k: random(s, device=device) for k, s in zip(OUTPUTS, (steps, final, final), strict=True)
    }


def results(case: Case, given: Tensors, upstream: Tensors) -> tuple[Tensors, Tensors]:
    """Results and gradients."""
    leaves = {
        k: v.clone().requires_grad_() if v.is_floating_point() else v for k, v in given.items()
    }
    found = dict(zip(OUTPUTS, (_rnn if case.by == "cudnn" else _layer)(case, leaves), strict=False))
    sum((upstream[k] * v).sum() for k, v in found.items()).backward()
    gradients = {f"{k}_grad": v.grad for k, v in leaves.items() if v.is_floating_point()}
    return {k: v.detach() for k, v in found.items()}, gradients


# --- a layer direction, from the equations ---------------------------------------------------


def _layer(case: Case, given: Tensors) -> list[torch.Tensor]:
    h, c = given["h0"], given["c0"]
    y, previous = [], torch.zeros_like(h)
    for step in range(case.time):
        t = case.time - 1 - step if case.reversed else step
        new_h, new_c = _lstm(case, given, given["x"][:, t], h, c)
        valid = given["mask"][:, t, None] if case.masked else torch.ones_like(h, dtype=torch.bool)
        previous = torch.where(valid, new_h, previous)
        h, c = torch.where(valid, new_h, h), torch.where(valid, new_c, c)
        y.append(previous)
    return [torch.stack(y, 1), h, c]


def _lstm(case: Case, given: Tensors, x: Any, h: Any, c: Any) -> list[torch.Tensor]:
    z = x @ given["kernel"] + h @ given["recurrent"] + given["bias"]
    i, f, n, o = z.chunk(4, 1)
    p = given.get("peephole", torch.zeros_like(h[:3]) if len(h) > 2 else torch.zeros(3, 1))
    c_new = torch.sigmoid(f + p[1] * c) * c + torch.sigmoid(i + p[0] * c) * torch.tanh(n)
    if case.clip:  # its gradient is that of the identity
        c_new = c_new + (c_new.clamp(-case.clip, case.clip) - c_new).detach()
    return [torch.sigmoid(o + p[2] * c_new) * torch.tanh(c_new), c_new]


# --- a multi-layer RNN, by torch.nn ----------------------------------------------------------


def module_of(case: Case, dtype: torch.dtype, device: str) -> torch.nn.Module:
    options: dict[str, Any] = {"proj_size": case.proj} if case.proj else {}
    if case.cell.startswith("rnn_"):
        options["nonlinearity"] = case.cell.removeprefix("rnn_")
    make = MODULES.get(case.cell, torch.nn.RNN)
    sizes = (case.inputs, case.units, case.layers)
    return make(*sizes, bidirectional=case.directions == 2, dtype=dtype, device=device, **options)


def _names(case: Case) -> list[str]:
    """Of the parameters, in cuDNN's order: all matrices, then all biases."""
    pseudo_layers = [
        f"l{layer}{suffix}"
        for layer in range(case.layers)
        for suffix in ("", "_reverse")[: case.directions]
    ]
    kinds = [["weight_ih", "weight_hh", *(["weight_hr"] if case.proj else [])]]
    kinds.append(["bias_ih", "bias_hh"])
    return [f"{kind}_{p}" for group in kinds for p in pseudo_layers for kind in group]


def _rnn_problem(case: Case, device: str) -> tuple[Tensors, Tensors]:
    states = case.layers * case.directions
    shapes = {"h0": [states, case.batch, case.hidden], "c0": [states, case.batch, case.units]}
    given = {k: random(s, device=device) for k, s in shapes.items()}
    given["x"] = random([case.time, case.batch, case.inputs], device=device)
    module = module_of(case, torch.float64, device)
    flat = [dict(module.named_parameters())[name].detach().flatten() for name in _names(case)]
    given["kernel"] = torch.cat(flat).bfloat16().double()
    upstream = {
        "y": random([case.time, case.batch, case.directions * case.hidden], device=device),
        "final_h": random(shapes["h0"], device=device),
        "final_c": random(shapes["c0"], device=device),
    }
    if case.cell != "lstm":
        del given["c0"], upstream["final_c"]
    swap = not case.time_major
    given = {
        k: v.transpose(0, 1).contiguous() if swap and v.dim() == 3 else v for k, v in given.items()
    }
    return given, {k: v.transpose(0, 1).contiguous() if swap else v for k, v in upstream.items()}


def _rnn(case: Case, given: Tensors) -> list[torch.Tensor]:
    """PyTorch refuses rows of length zero: they stay as they are."""
    x, h, c = (
        None if (v := given.get(k)) is None else v if case.time_major else v.transpose(0, 1)
        for k in ("x", "h0", "c0")
    )
    module = module_of(case, torch.float64, str(x.device))
    named, start, parameters = dict(module.named_parameters()), 0, {}
    for name in _names(case):
        size = named[name].numel()
        parameters[name] = given["kernel"][start : start + size].view_as(named[name])
        start += size
    lengths = torch.tensor(case.lengths or [case.time] * case.batch)
    rows = torch.nonzero(lengths).flatten()
    packed = torch.nn.utils.rnn.pack_padded_sequence(
        x[:, rows.to(x.device)], lengths[rows], enforce_sorted=False
    )
    states = h[:, rows] if c is None else (h[:, rows], c[:, rows])
    output, final = torch.func.functional_call(module, parameters, (packed, states))
    output, _ = torch.nn.utils.rnn.pad_packed_sequence(output, total_length=case.time)
    found = [torch.zeros(case.time, case.batch, output.shape[2], dtype=x.dtype, device=x.device)]
    found += [h.clone()] if c is None else [h.clone(), c.clone()]
    values = [output, *(final if isinstance(final, tuple) else (final,))]
    found = [f.index_copy(1, rows.to(x.device), v) for f, v in zip(found, values, strict=True)]
    return [f if case.time_major else f.transpose(0, 1) for f in found]
